"""Store of pairs in memory: the contract without a disk, for comparison with other stores."""

import threading
from dataclasses import dataclass, field
from datetime import datetime

from certs.keys.pair import Pair
from certs.state.stored_pair import Holder


@dataclass
class MemoryPairs:
    """Store of pairs, for several servers."""

    held: dict[Holder, Pair] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, holder: Holder) -> Pair | None:
        """Return a holder's pair."""
        return self.held.get(holder)

    def keep(self, holder: Holder, pair: Pair, before: str | None) -> Pair:
        """Store a pair, unless another one is stored."""
        with self.lock:
            there = self.held.get(holder)
            if there is not None and there.leaf.serial != before:
                return there
            self.held[holder] = pair
            return pair

    def place(self, holder: Holder) -> str:
        """Return a name for the place of a pair."""
        return f"memory {holder}"

    def services_end(self) -> datetime | None:
        """Return the latest end of service certificates."""
        ends = (pair.leaf.not_after for holder, pair in self.held.items() if holder.startswith("services/"))
        return max(ends, default=None)

    def last_end(self) -> datetime | None:
        """Return the latest end of all certificates."""
        return max((pair.leaf.not_after for pair in self.held.values()), default=None)
