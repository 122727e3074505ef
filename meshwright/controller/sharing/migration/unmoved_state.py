"""State of an installation with one server, which must be moved into the store before a server makes a CA.

An upgrade from a state directory starts the servers of the shared store while the Job that moves the
directory still waits for the last server of the directory. A server that made a CA meanwhile would end the
mesh, because no proxy knows that CA.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from certs.authority_records.fields import AUTHORITY, MOVING
from certs.errors import StateError
from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import Record, RecordsError, RecordStore

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks whether the state has been moved."""

Unmoved = Callable[[], Awaitable[str]]
"""Function that returns why an empty store must not be used yet, as a sentence; empty if it can be used."""

_MOVING: Final = (
    "a mesh is being moved or imported into the store; if this was interrupted, repeat it with `meshwright "
    "state move` or `meshwright state import`"
)

_log = structlog.get_logger("controller.sharing")


async def nothing_unmoved() -> str:
    """Return no reason, for stores without a predecessor."""
    return ""


async def until_moved(records: RecordStore, unmoved: Unmoved, seconds: float = LOOK_SECONDS) -> None:
    """Wait while a state is to be moved into the store, or is being moved. Raises StateError."""
    logged = ""
    while reason := await _reason_to_wait(records, unmoved):
        if reason != logged:
            _log.warning("waiting for the CA in the shared store", because=reason)
            logged = reason
        await asyncio.sleep(seconds)


async def _reason_to_wait(records: RecordStore, unmoved: Unmoved) -> str:
    try:
        record = await records.read(AUTHORITY)
    except RecordsError as error:
        raise StateError(f"the shared store cannot be read: {error}") from error
    if record is None:
        return await unmoved()
    return _MOVING if _is_moving(record) else ""


def _is_moving(record: Record) -> bool:
    try:
        fields = Content.decode(record.content).fields
    except UnreadableContentError:
        return False  # opening the CA reports the damage
    return MOVING in fields and "ca" not in fields
