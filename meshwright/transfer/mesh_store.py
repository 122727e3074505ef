"""The state of a mesh in an open store of records, for callers in another thread than the store's."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from certs.authority_records.data_key import RecordedDataKey
from certs.errors import StateError
from certs.state import sealed_state
from certs.state.sealing import RecordSeal, new_data_key
from meshwright.records.content import UnreadableContentError
from meshwright.records.contract import RecordsError, RecordStore, ReplicaId
from meshwright.transfer.mesh_state import MeshState
from meshwright.transfer.store_state import read_root, read_store
from meshwright.transfer.store_writer import PAUSES, StoreWriter, WriteCount, count_at, require_no_rest

T = TypeVar("T")


class LoopThread(Protocol):
    """The event loop of a store, in another thread than the caller's."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and return its result or raise its error."""


@dataclass(frozen=True, slots=True)
class MeshStore:
    """A store of records and its event loop; all methods wait for the store, and raise StateError.

    `state` is the state directory of the caller, and `passphrase` the file with the passphrase of the data
    key. `pauses` are the seconds before the repetitions of an unanswered write.
    """

    records: RecordStore
    replica: ReplicaId
    thread: LoopThread
    state: Path
    passphrase: Path | None
    pauses: tuple[float, ...] = PAUSES

    def root(self) -> str | None:
        """Return the fingerprint of the CA of the mesh in the store, None for a store without a mesh."""
        with explained():
            return self.thread.run(read_root(self.records)).root

    def read(self) -> MeshState:
        """Return the state in the store; the store is not changed."""
        with explained():
            # Opening the data key of an empty store would make one.
            if self.thread.run(read_root(self.records)).fields is None:
                raise StateError("the store has no mesh")
            data_key = self._data_key().read_or_make()
            mesh = self.thread.run(read_store(self.records, RecordSeal(data_key)))
            return replace(mesh, data_key=data_key)

    def write(self, mesh: MeshState, now: datetime) -> WriteCount:
        """Write a state into a store that is empty, or has this mesh, completely or in part."""
        with explained():
            # The data key first: a record of the CA without the data key counts as a loss.
            data_key = self._data_key(count_at(now)).read_or_make(
                lambda: self.thread.run(require_no_rest(self.records)),
                lambda: mesh.data_key or new_data_key(),
            )
            writer = StoreWriter(self.records, self.replica, RecordSeal(data_key), self.pauses)
            return self.thread.run(writer.write(mesh, now))

    def _data_key(self, least_count: int = 1) -> RecordedDataKey:
        words = None
        if self.passphrase is not None:
            words = sealed_state.read_passphrase(self.passphrase, self.state)
        return RecordedDataKey(self.records, self.replica, self.thread.loop, words, least_count)


@contextmanager
def explained() -> Iterator[None]:
    """Raise errors of the store as StateError."""
    try:
        yield
    except (RecordsError, UnreadableContentError) as error:
        raise StateError(f"the shared store cannot be used: {error}") from error
