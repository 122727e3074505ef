"""Firewalls: derived values updated with every change, so their readers are marked less often."""

from collections.abc import Mapping
from typing import Any, Generic, ParamSpec, TypeVar, cast

from meshwright.engine.derived import ComputationSource, DerivedFunction
from meshwright.engine.graph import Graph
from meshwright.engine.node import Derivation, Family, Gate, Wall, same

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
S = TypeVar("S", bound=ComputationSource)


class Firewall(Generic[V]):
    """One derived value that reads much, is read by many, and seldom changes.

    A reader is marked only if the firewall's value has really changed. A reader of any other derived value is
    marked as soon as an input behind the value changes. The price: the value is computed with every change of
    its inputs, even without a reader. For example, the MeshConfig in force is a firewall, read by nearly
    every function.
    """

    def __init__(self, graph: Graph, function: DerivedFunction[S, [], V], source: S) -> None:
        self._graph = graph
        self._pending: dict[Derivation, None] = {}
        self._node = function.node(source)
        self._level = graph.add_stage(self)
        self._source = Wall(Family(str(self._node)), None, self._node, self._level)
        graph.keep(self._node, self._pending)
        self._seen_at = 0

    def value(self) -> V:
        """Return the derived value behind the firewall, or raise the error of the computation."""
        self._graph.record(
            self._source
        )  # not the derivation behind it, whose readers would be marked with every change
        return self._settled()

    def settle(self) -> None:
        """Update the derived value, and after a change mark the values computed from this one."""
        if not self._pending and not self._node.stale:
            return
        self._pending.clear()
        self._graph.refresh_before(self._node, self._level, self._node)
        if self._node.changed_at != self._seen_at:
            self._seen_at = self._node.changed_at
            self._changed()

    def _settled(self) -> V:
        if self._node.stale:  # before the first change
            self.settle()
        if (error := self._node.error) is not None:
            raise error.with_traceback(None)
        return cast("V", self._node.outcome)

    def _changed(self) -> None:
        self._graph.changed(self._source)


class MappingFirewall(Firewall[Mapping[K, V]], Generic[K, V]):
    """A derived mapping read by key: a reader is marked when the value of the read key has changed."""

    def __init__(self, graph: Graph, function: DerivedFunction[S, [], Mapping[K, V]], source: S) -> None:
        super().__init__(graph, function, source)
        self._value: Mapping[K, V] | None = None
        self._keys = Family(self._source.family.name)

    def get(self, key: K) -> V | None:
        """Return the value of a key in the derived mapping, or `None`; raise the mapping's error."""
        if self._graph.computing:
            result = self._keys.nodes.get(key)
            if result is None:
                result = self._keys.nodes[key] = Wall(self._keys, key, self._node, self._level)
            self._graph.record(result)
        return self._settled().get(key)

    def _changed(self) -> None:
        super()._changed()
        before = self._value
        now = self._value = (
            None if self._node.error is not None else cast("Mapping[K, V]", self._node.outcome)
        )
        if before is None or now is None:  # an error concerns the readers of all keys
            for node in self._keys.nodes.values():
                self._graph.changed(node)
            return
        for key in {**before, **now}:
            node = self._keys.nodes.get(key)
            if node is not None and not same(before.get(key), now.get(key)):
                self._graph.changed(node)


class Firewalls(Generic[P, V]):
    """Values of one derived function, each with a firewall as long as it is read.

    For small values with many readers and often changing inputs. Every change updates the concerned values.
    """

    def __init__(self, graph: Graph, function: DerivedFunction[S, P, V], source: S) -> None:
        self._graph = graph
        self._function: DerivedFunction[Any, P, V] = function
        self._source = source
        self._pending: dict[Derivation, None] = {}
        self._walls = Family(function.name)
        self._level = graph.add_stage(self)

    def value(self, *args: P.args, **kwargs: P.kwargs) -> V:
        """Return the derived value for these arguments, or raise the error of the computation."""
        graph = self._graph
        with graph.lock:
            node = self._function.node(self._source, *args, **kwargs)
            wall: Gate | None = self._walls.nodes.get(node.key)
            if wall is None:
                wall = self._walls.nodes[node.key] = Gate(self._walls, node.key, node, self._level)
                graph.keep(node, self._pending)
                graph.unread(wall)
            graph.record(wall)
            if node.stale:  # new, or read by an earlier stage
                self._settle(node, wall)
            if (error := node.error) is not None:
                raise error.with_traceback(None)
            return cast("V", node.outcome)

    def settle(self) -> None:
        """Update the derived values concerned by a change, and mark the readers of changed ones."""
        while self._pending:
            node = next(iter(self._pending))
            self._settle(node, self._walls.nodes[node.key])

    def _settle(self, node: Derivation, wall: Gate) -> None:
        self._pending.pop(node, None)
        self._graph.refresh_before(node, self._level, node)
        if wall.changed_at < node.changed_at:
            self._graph.changed(wall)
