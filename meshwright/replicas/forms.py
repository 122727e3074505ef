"""The newest form of records that all servers of a mesh can read.

A server of an older version may come back, for example after a rollback. A newer form is therefore used only
when no server has been here for ten minutes that cannot read it.

A pure module.
"""

from collections.abc import Mapping
from typing import Final

from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState

SEEN_SECONDS: Final = 600.0
"""Seconds for which the form of a server counts after the server was here."""

OLDEST: Final = 1
"""Form that every server reads; also that of a server with an unreadable state, whose form is unknown."""


class SeenForms:
    """The forms of the servers that were here lately. Times are seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._seen: dict[ReplicaId, tuple[float, int]] = {}

    def note(self, now: float, states: Mapping[ReplicaId, ReplicaState | None]) -> None:
        """Take the servers that are here now."""
        for name, state in states.items():
            self._seen[name] = (now, OLDEST if state is None else state.form)

    def newest(self, now: float) -> int | None:
        """Return the newest form that all servers of the last SEEN_SECONDS read.

        Return None if this server has begun later than that, because it has not seen all of them.
        """
        self._seen = {name: seen for name, seen in self._seen.items() if seen[0] + SEEN_SECONDS > now}
        if now < self._began + SEEN_SECONDS:
            return None
        return min((form for _, form in self._seen.values()), default=None)
