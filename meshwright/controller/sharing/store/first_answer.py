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

MOST_REFUSALS: Final = 15
"""Refusals in a row after which a store that was away refuses for good."""

_log = structlog.get_logger("controller.sharing")


def wait_for_store(thread: StoreThread, records: HealedRecords) -> None:
    """Wait until the store answers, unless an earlier run has kept its records; call in a thread.

    Raises StateError for a store that refuses, and when the thread of the store ends. An API server that has
    just started refuses everybody until it has read the roles, so after a wait some refusals are no end.
    """
    is_waiting, refusals = False, 0
    while True:
        try:
            thread.run(records.begin())
            thread.run(records.read(SEAL))
            return
        except RecordsError as error:
            is_away = isinstance(error, StoreUnavailableError)
            refusals = 0 if is_away else refusals + 1
            if thread.is_closed or (not is_away and not (is_waiting and refusals < MOST_REFUSALS)):
                raise StateError(f"the shared store cannot be used: {error}") from error
            if not is_waiting:
                _log.warning("waiting for the shared store", reason=str(error))
            is_waiting = True
        time.sleep(WAIT_SECONDS)
