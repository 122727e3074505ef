"""Writer of records that a store has lost."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import (
    Changes,
    RecordsError,
    RecordStore,
    StoreUnavailableError,
    WriteConflictError,
)
from meshwright.records.key import Key
from meshwright.records.recovery.domain import Identity
from meshwright.records.recovery.known_records import KnownRecords
from meshwright.records.update import ATTEMPTS

AT_ONCE: Final = 8
"""Number of lost records that are written at the same time."""

NAMED: Final = 5
"""Number of keys that a message names."""

_log = structlog.get_logger("records.recovery")


@dataclass(frozen=True, slots=True)
class Pauses:
    """Times in seconds.

    - `patience`: until a start without the store goes on with the kept records.
    - `again`: until lost records are tried again that could not be written.
    - `keep`: shortest time between two writes of the kept records.
    """

    patience: float = 5.0
    again: float = 5.0
    keep: float = 2.0


PAUSES: Final = Pauses()


class Healer:
    """Writes the suspects of `known` again, unless the store has them. For the event loop of the store."""

    def __init__(
        self,
        store: RecordStore,
        known: KnownRecords,
        identity: Identity,
        clock: Callable[[], datetime],
        pauses: Pauses,
    ) -> None:
        self._store, self._known, self._identity = store, known, identity
        self._clock, self._pauses = clock, pauses
        self._work = asyncio.Event()
        self._is_compared = False
        self._rechecked: set[Key] = set()
        self.error = ""
        """The reason why some suspects could not be written; empty for none."""

    def wake(self) -> None:
        """Have suspects written."""
        self._work.set()

    async def run(self) -> None:
        """Write lost records again, until cancelled; a store that is away is tried again.

        Raises RecordsError if this server has begun without the store, and the store is another mesh's.
        """
        while True:
            await self._until_work()
            await self._compare()
            self._work.clear()
            await self._heal_all()
            if self._known.suspects:
                await asyncio.sleep(self._pauses.again)
                self._work.set()

    async def _until_work(self) -> None:
        """Wait for suspects; what stays unconfirmed for two turns is one, and is read once more."""
        before = set[Key]()
        while not self._work.is_set():
            try:
                async with asyncio.timeout(self._pauses.again):
                    await self._work.wait()
            except TimeoutError:
                due = before & self._known.unconfirmed
                self._known.unconfirmed -= due
                self._known.suspects |= due
                before = set(self._known.unconfirmed)
                if due:
                    self._rechecked |= due
                    self._work.set()

    async def compare(self) -> bool:
        """Return whether the known records are of the mesh in the store; raise RecordsError.

        True if nothing is known, False for a store without a mesh.
        """
        self._is_compared = not self._known.records or await self._is_same_mesh()
        return self._is_compared

    async def _is_same_mesh(self) -> bool:
        known = self._known.records.get(self._identity.key)
        present = await self._store.read(self._identity.key)
        if known is None or present is None:
            return False
        try:
            return self._identity.is_same(Content.decode(known.content), Content.decode(present.content))
        except UnreadableContentError:
            return False

    async def _compare(self) -> None:
        """Compare the meshes once, before the first write."""
        while not self._is_compared:
            try:
                is_same = await self.compare()
            except StoreUnavailableError:
                await asyncio.sleep(self._pauses.again)
                continue
            if not is_same:
                raise RecordsError(
                    "the store is not the one of the mesh that this server has followed: correct the "
                    "settings, and start the server again"
                )

    async def _heal_all(self) -> None:
        """Write all suspects again, or find that the store has lost nothing of them."""
        rest = iter(self._known.in_order(self._known.suspects))
        healed, errors = list[Key](), list[str]()

        async def work() -> None:
            for key in rest:
                try:
                    if await self._mend(key):
                        healed.append(key)
                except UnreadableContentError as error:
                    self._known.damage(key, str(error))
                except StoreUnavailableError as error:
                    errors.append(str(error))
                    return
                except RecordsError as error:
                    errors.append(str(error))

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        self.error = errors[0] if errors else ""
        if healed:
            _log.warning(
                "the shared store had lost records, and this server has written them again",
                records=len(healed),
                keys=sorted(healed)[:NAMED],
            )

    async def _mend(self, key: Key) -> bool:
        """Write the lost fields of a record; return False if the store has lost none."""
        present = await self._store.read(key)
        for _ in range(ATTEMPTS):
            content = self._known.mended(key, present, self._clock())
            if content is None:
                self._known.settle(key, present)
                if key not in self._rechecked:
                    self._known.unconfirmed.add(key)
                self._rechecked.discard(key)
                return False
            before = None if present is None else present.revision
            try:
                written = await self._store.write(key, content.encode(), before)
            except WriteConflictError as conflict:
                present = conflict.current
                continue
            # Not `settle`: meanwhile this server may have followed or written more, which is compared again.
            self._known.take(Changes((written,)), self._clock())
            self._known.unconfirmed.add(key)
            self._rechecked.discard(key)
            return True
        raise RecordsError(f"{key} was changed by others {ATTEMPTS} times in a row")
