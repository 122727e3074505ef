"""Wait of a start for the first answer of the shared store."""

import time
from typing import Final

import structlog

from certs.errors import StateError
from certs.shared_records.custody import SEAL
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.records.contract import RecordsError, StoreUnavailableError
from meshwright.records.recovery.store import HealedRecords

WAIT_SECONDS: Final = 1.0
"""Seconds between two attempts of a first start to reach the store."""

_log = structlog.get_logger("controller.sharing")


def wait_for_store(thread: StoreThread, records: HealedRecords) -> None:
    """Wait until the store answers, unless an earlier run has kept its records; call in a thread.

    Raises StateError for a store that refuses, and when the thread of the store ends.
    """
    is_first = True
    try:
        thread.run(records.begin())
        while True:
            try:
                thread.run(records.read(SEAL))
                return
            except StoreUnavailableError as error:
                if thread.is_closed:
                    raise
                if is_first:
                    _log.warning("waiting for the shared store", reason=str(error))
                is_first = False
            time.sleep(WAIT_SECONDS)
    except RecordsError as error:
        raise StateError(f"the shared store cannot be used: {error}") from error
