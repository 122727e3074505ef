"""The record with the form that all servers of the mesh read, its level, and the end of servers below it.

    {"level": 1}

Only the leader raises the level (`meshwright.replicas.forms`). The level never becomes lower.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Final

import structlog

from certs.errors import StateError
from meshwright.records.content import NEWEST, Content, Fields, UnreadableContentError
from meshwright.records.contract import (
    Changes,
    Epoch,
    RecordsError,
    RecordStore,
    ReplicaId,
    StoreUnavailableError,
)
from meshwright.records.key import key_of
from meshwright.records.recovery.domain import Domain, newest
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Writer, update
from meshwright.replicas.forms import SeenForms
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership

LEVEL: Final = key_of("mesh")
"""Key of the record."""

LEVEL_DOMAIN: Final = Domain(LEVEL, newest, needed_at_start=True)
"""The level never vanishes: an older server would start again, and misread records."""

LOOK_SECONDS: Final = 5.0
"""Seconds between two looks, of the leader at the servers, and of each server at the level."""

_FIELD: Final = "level"

_log = structlog.get_logger("controller.sharing")


class RecordForms:
    """The level of the mesh as this server follows it. For the server's event loop, unless noted."""

    def __init__(
        self,
        store: RecordStore,
        replica: ReplicaId,
        loop: asyncio.AbstractEventLoop,
        membership: Membership,
        leadership: Leadership,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._replica, self._calls = store, replica, ThreadCalls(loop)
        self._membership, self._leadership, self._monotonic = membership, leadership, monotonic
        self._seen = SeenForms(monotonic())
        self._level = 0
        self._reason = ""

    def require(self) -> None:
        """Raise StateError if the mesh is above the newest form that this server reads. Call in a thread.

        Without an answer of the store the start goes on, and the level is read as soon as the store is back.
        """
        try:
            record = self._calls.run(self._store.read(LEVEL))
        except StoreUnavailableError:
            return
        except RecordsError as error:
            raise StateError(f"the shared store cannot be used: {error}") from error
        if record is not None:
            self._take(record.content)
        self._check()

    async def follow(self) -> None:
        """Follow the record until cancelled; call on the event loop of the store."""

        def hear(changes: Changes) -> None:
            for record in changes.records:
                self._take(record.content)

        await self._store.follow(LEVEL, hear)

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks."""
        self._membership.follow(self._note)
        yield "level of the mesh", self._checking()
        yield "newer forms of records", self._leadership.lead(self._raising)

    def look(self) -> None:
        """Raise the level, if all servers read a newer form. Call in a thread; raises StateError."""
        form = self._seen.newest(self._monotonic())
        if form is None or form <= self._level:
            return

        def change(fields: Fields | None) -> Fields | None:
            there = fields or {}
            return None if _level(there) >= form else {**there, _FIELD: form}

        try:
            self._calls.run(update(self._store, LEVEL, change, Writer(self._replica)))
        except (RecordsError, UnreadableContentError) as error:
            raise StateError(f"the level of the mesh cannot be raised: {error}") from error
        _log.info("all servers read this form of records, and older servers cannot start any more", form=form)
        self._level = form

    def _take(self, content: bytes) -> None:
        try:
            self._level = max(self._level, _level(Content.decode(content).fields))
            self._reason = ""
        except UnreadableContentError as error:
            self._reason = f"the record {LEVEL} cannot be read: {error}"

    def _check(self) -> None:
        if self._reason:
            raise StateError(self._reason)
        if self._level > NEWEST:
            raise StateError(
                f"the servers of this mesh write records of form {self._level}, and form {NEWEST} is the "
                "newest that this server reads: upgrade this server"
            )

    def _note(self) -> None:
        self._seen.note(self._monotonic(), self._membership.states)

    async def _checking(self) -> None:
        while True:
            self._check()
            await asyncio.sleep(LOOK_SECONDS)

    async def _raising(self, epoch: Epoch) -> None:
        del epoch  # the level only rises, whoever writes it
        while True:
            self._note()
            try:
                await asyncio.to_thread(self.look)
            except StateError as error:  # the next look tries again
                _log.warning("level of the mesh is not raised yet", reason=str(error))
            await asyncio.sleep(LOOK_SECONDS)


def _level(fields: Fields) -> int:
    value = fields.get(_FIELD, 0)
    if type(value) is not int or value < 0:
        raise UnreadableContentError(f"{_FIELD}: expected an integer from 0")
    return value
