"""Store of the authority in memory: the contract without a disk, with one compared write for all fields."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from certs.issuers.root import CaNames
from certs.roots.authority_state import AuthorityState, is_step
from certs.roots.authority_store import CaSlot, Overtaken, Revision, StoredAuthority


@dataclass
class Record:
    """The state that several servers share. `on_write` is called before and after each write."""

    state: AuthorityState = field(default_factory=AuthorityState)
    count: int = 0
    on_write: Callable[[], None] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)


class MemoryAuthority:
    """The store of one server."""

    def __init__(self, record: Record) -> None:
        self._record = record

    @property
    def is_shared(self) -> bool:
        """Return True: several servers of a test write the record."""
        return True

    @property
    def place(self) -> str:
        """Return a name for the place of the CA."""
        return "memory"

    def names(self, slot: CaSlot) -> CaNames:
        """Return names for the parts of a CA."""
        name = slot.name.lower()
        return CaNames(f"certificate of {name}", f"key of {name}", f"roots of {name}", "restore the record")

    def recover(self) -> StoredAuthority:
        """Return the state: a write is one act, so a crash leaves nothing to finish."""
        return self.read()

    def read(self) -> StoredAuthority:
        """Return the present state."""
        with self._record.lock:
            return StoredAuthority(self._record.state, Revision(str(self._record.count)))

    def replace(self, before: Revision, state: AuthorityState) -> StoredAuthority:
        """Store a state in the place of a revision."""
        with self._record.lock:
            record = self._record
            there = StoredAuthority(record.state, Revision(str(record.count)))
            if there.revision != before:
                raise Overtaken(self.place, there)
            if not is_step(there.state, state):
                raise ValueError("a CA is created once, and changes only by the steps of a root rotation")
            record.on_write()
            record.state, record.count = state, record.count + 1
            record.on_write()
            return StoredAuthority(state, Revision(str(record.count)))
