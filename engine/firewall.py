"""Firewalls: derived values that come up to date with every change, so that doubt ends there."""

from typing import Generic, TypeVar, cast

from engine.derived import Computed, Derived
from engine.graph import Graph
from engine.node import Derivation, Wall

V = TypeVar("V")
S = TypeVar("S", bound=Computed)


class Firewall(Generic[V]):
    """One derived value that many read and that reads much, and seldom changes.

    Whatever reads it is marked only when its value is another one; reading any other derived value marks
    the reader as soon as an input behind it changes. It is computed with every change that concerns it,
    whether somebody wants it or not.
    """

    def __init__(self, graph: Graph, function: Derived[S, [], V], source: S) -> None:
        self._graph = graph
        self._pending: dict[Derivation, None] = {}
        self._node = function.node(source)
        self._level = graph.add_stage(self)
        self._source = Wall(self._node, self._level)
        graph.keep(self._node, self._pending)
        self._seen_at = 0

    def value(self) -> V:
        """Return the value, or raise its error."""
        self._graph.record(self._source)  # not the value behind it: through that one, doubt would come in
        if self._node.stale:  # before the first change
            self.settle()
        if (error := self._node.error) is not None:
            raise error.with_traceback(None)
        return cast("V", self._node.outcome)

    def settle(self) -> None:
        """Come up to date, and mark the readers if the value is another one."""
        if not self._pending and not self._node.stale:
            return
        self._pending.clear()
        self._graph.refresh_before(self._node, self._level, str(self._node))
        if self._node.changed_at != self._seen_at:
            self._seen_at = self._node.changed_at
            self._graph.changed(self._source)
