"""Store of records whose calls fail as a seed decides, around another store.

A failed call raises StoreUnavailableError. Like a request over a network, it may have had no effect, or its
whole effect before the error, or its effect later, between any two other calls.
"""

import enum
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from meshwright.records.contract import (
    Changes,
    Epoch,
    Knowledge,
    Record,
    RecordsError,
    RecordStore,
    ReplicaId,
    Revision,
    StoreUnavailableError,
)
from meshwright.records.key import Key

T = TypeVar("T")


class Fault(enum.Enum):
    """What happens to a call."""

    NONE = "the call succeeds"
    BEFORE = "the call fails, without an effect"
    AFTER = "the call has its effect, and the answer is lost"
    LATER = "the call fails, and has its effect later"


_FAULTS: Final = (Fault.BEFORE, Fault.AFTER, Fault.LATER)


@dataclass
class Network:
    """The network between all clients and their store: the next faults, and the calls under way.

    `share` is the part of calls that fail. `script` has the faults of the first writes and removals, before
    those of the seed; reads do not take part in it. Without a share, delayed calls wait for `deliver_all`.
    """

    seed: int = 0
    share: float = 0.0
    script: list[Fault] = field(default_factory=list)
    delayed: list[Callable[[], Coroutine[Any, Any, object]]] = field(default_factory=list)
    faults: int = 0

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - a test's

    def next_fault(self, *, reads: bool = False) -> Fault:
        """Return what happens to the next call."""
        if self.script and not reads:
            fault = self.script.pop(0)
        else:
            fault = self._random.choice(_FAULTS) if self._random.random() < self.share else Fault.NONE
        self.faults += fault is not Fault.NONE
        return fault

    async def deliver_some(self) -> None:
        """Let each delayed call have its effect now, or stay delayed, in any order."""
        if not self.share:
            return
        waiting, self.delayed = self.delayed, []
        self._random.shuffle(waiting)
        for call in waiting:
            if self._random.random() < 0.5:
                self.delayed.append(call)
            else:
                await _effect(call)

    async def deliver_all(self) -> None:
        """Let all delayed calls have their effect."""
        while self.delayed:
            await _effect(self.delayed.pop(0))


async def _effect(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Do a call whose caller does not wait any more, so that its refusal reaches nobody."""
    try:
        await call()
    except RecordsError:
        return


class FaultyRecords:
    """Client of a store behind a faulty network; `follow`, `announce` and `lead` are the store's own."""

    def __init__(self, store: RecordStore, network: Network) -> None:
        self._store = store
        self._network = network

    async def read(self, key: Key) -> Record | None:
        """Read the record, unless the call fails."""
        await self._network.deliver_some()
        if self._network.next_fault(reads=True) is not Fault.NONE:
            raise StoreUnavailableError("the store does not answer")
        return await self._store.read(key)

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what the store knows about a record."""
        return self._store.last_known(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write the record, or fail before, after, or with a later effect."""
        return await self._faulty(lambda: self._store.write(key, content, before))

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record, or fail before, after, or with a later effect."""
        await self._faulty(lambda: self._store.remove(key, before))

    async def _faulty(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        await self._network.deliver_some()
        match self._network.next_fault():
            case Fault.NONE:
                return await call()
            case Fault.BEFORE:
                pass
            case Fault.AFTER:
                await _effect(call)
            case Fault.LATER:
                self._network.delayed.append(call)
        raise StoreUnavailableError("the store does not answer")

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Follow the store."""
        await self._store.follow(prefix, receive)

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Announce the replica in the store."""
        await self._store.announce(state, receive)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Stand for leadership in the store."""
        await self._store.lead(work)
