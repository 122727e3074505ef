"""Shared records for tests: an event loop in a thread, and a store with faults."""

import asyncio
import contextlib
import enum
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Self, TypeVar

from meshwright.records.contract import (
    Changes,
    Epoch,
    Knowledge,
    Record,
    RecordStore,
    Revision,
    StoreUnavailableError,
)
from meshwright.records.key import Key

T = TypeVar("T")


class Fault(enum.Enum):
    """Faults of one call: none, or no answer, before or after the call takes effect."""

    NONE = "none"
    BEFORE = "before"
    AFTER = "after"


def no_fault() -> Fault:
    """Return that the call has no fault."""
    return Fault.NONE


class FaultyRecords:
    """Client of a store, as one server sees the store: with calls that fail, and changes that are late.

    `fault` is asked at each write and removal, and `read_fault` at each read. While `is_away`, all calls fail
    and changes are held back; while `is_cut`, only changes. `heal` hands them over in their last form, as a
    store does after a break.
    """

    def __init__(self, store: RecordStore, fault: Callable[[], Fault] = no_fault) -> None:
        self._store = store
        self.fault = fault
        self.read_fault = no_fault
        self.is_away = False
        self._late: list[tuple[Key, Callable[[Changes], None], dict[Key, Record | None]]] = []
        self.is_cut = False

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key."""
        self._require()
        record = await self._store.read(key)
        _answer(self.read_fault())
        return record

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what the store knows about a record."""
        return self._store.last_known(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write a record, with the fault of this call."""
        fault = self._faulty()
        record = await self._store.write(key, content, before)
        _answer(fault)
        return record

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove a record, with the fault of this call."""
        fault = self._faulty()
        await self._store.remove(key, before)
        _answer(fault)

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Follow the store, and hold the changes back while the connection is cut."""
        late: dict[Key, Record | None] = {}
        self._late.append((prefix, receive, late))

        def hear(changes: Changes) -> None:
            if not (self.is_cut or self.is_away):
                receive(changes)
                return
            late.update({record.key: record for record in changes.records})
            late.update(dict.fromkeys(changes.removed))

        await self._store.follow(prefix, hear)

    def heal(self) -> None:
        """Connect again, and hand over the changes held back; on the event loop of the store."""
        self.is_away = self.is_cut = False
        for _, receive, late in self._late:
            if late:
                present = tuple(record for record in late.values() if record is not None)
                removed = tuple(key for key, record in late.items() if record is None)
                late.clear()
                receive(Changes(present, removed))

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[Any, bytes]], None]
    ) -> None:
        """Show this replica, as the store does."""
        await self._store.announce(state, receive)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Lead, as the store does."""
        await self._store.lead(work)

    def _require(self) -> None:
        if self.is_away:
            raise StoreUnavailableError("the store of the test is away")

    def _faulty(self) -> Fault:
        self._require()
        fault = self.fault()
        if fault is Fault.BEFORE:
            raise StoreUnavailableError("the store of the test lost the request")
        return fault


def _answer(fault: Fault) -> None:
    if fault is not Fault.NONE:
        raise StoreUnavailableError("the store of the test lost the answer")


class LoopThread:
    """An event loop that runs in a thread, within a context."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._run, name="records-loop")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._cancelled())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.run_until_complete(_last_calls_cancelled())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def start(self, *works: Coroutine[Any, Any, None]) -> None:
        """Start coroutines on the loop, and return after each has run until it first waits."""
        self.run(self._started(works))

    async def _started(self, works: tuple[Coroutine[Any, Any, None], ...]) -> None:
        self._tasks += [asyncio.ensure_future(work) for work in works]
        for _ in range(3):
            await asyncio.sleep(0)

    async def _cancelled(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _last_calls_cancelled() -> None:
    """Cancel calls of threads that came while the loop ended, so that no coroutine is left over."""
    await asyncio.sleep(0)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def away(*stores: FaultyRecords) -> Iterator[None]:
    """Let the store be away for these servers within the context."""
    for store in stores:
        store.is_away = True
    yield
    for store in stores:
        store.is_away = False
