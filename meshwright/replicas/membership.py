"""The present servers of one mesh, with their announced states."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState, UnreadableStateError

_log = structlog.get_logger("replicas")


class Membership:
    """The present servers, this one included, as the store has listed them last.

    For one event loop, but `encoded` may be called from any thread. While the store is away, all servers
    stay present.
    """

    def __init__(self, replica: ReplicaId, own: ReplicaState) -> None:
        self.replica = replica
        self._own = own
        self._others: dict[ReplicaId, ReplicaState | None] = {}
        self._contents: dict[ReplicaId, bytes] = {}
        self._followers: list[Callable[[], None]] = []

    @property
    def own(self) -> ReplicaState:
        """Return the state of this server."""
        return self._own

    @property
    def states(self) -> Mapping[ReplicaId, ReplicaState | None]:
        """Return the states of all servers in the order of their names, `None` for an unreadable one."""
        return dict(sorted({**self._others, self.replica: self._own}.items()))

    @property
    def leader(self) -> ReplicaId | None:
        """Return the name of the leading server. Of two servers with an epoch, the higher epoch counts."""
        terms = [(state.epoch, name) for name, state in self.states.items() if state and state.epoch]
        return max(terms)[1] if terms else None

    def set_facts(self, **facts: Any) -> None:  # noqa: ANN401 - the dataclass names the facts and their types
        """Change facts of this server, for example `streams=31`; the next renewal announces the new state."""
        self._own = replace(self._own, **facts)

    def encoded(self) -> bytes:
        """Return the state to announce. May be called from any thread."""
        return self._own.encode()

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change of the other servers or their states."""
        self._followers.append(changed)

    def hear(self, contents: Mapping[ReplicaId, bytes]) -> None:
        """Take the announced states of all servers, and log new and ended servers."""
        before = set(self._others)
        # The own state is left out, because the store may have an older one.
        self._others = {
            name: self._decoded(name, content) for name, content in contents.items() if name != self.replica
        }
        self._contents = dict(contents)
        for name in sorted(set(self._others) - before):
            _log.info("another server of the mesh is here", replica=name)
        for name in sorted(before - set(self._others)):
            _log.info("another server of the mesh is gone", replica=name)
        for changed in tuple(self._followers):
            changed()

    def _decoded(self, name: ReplicaId, content: bytes) -> ReplicaState | None:
        # Most renewals change one server only, and a state that cannot be read is logged once.
        if self._contents.get(name) == content and name in self._others:
            return self._others[name]
        try:
            return ReplicaState.decode(content)
        except UnreadableStateError as error:
            _log.warning("state of another server cannot be read", replica=name, error=str(error))
            return None
