"""Derived values: functions whose results are remembered, with what they read, until that changes."""

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from meshwright.engine.graph import Graph
from meshwright.engine.node import ABSENT, Derivation, Function
from meshwright.engine.table import Table


class ComputationSource(Protocol):
    """What derived values are derived from: it has a graph, and is hashable."""

    @property
    def graph(self) -> Graph:
        """Return the graph that remembers."""
        ...


S = TypeVar("S", bound=ComputationSource)
P = ParamSpec("P")
V = TypeVar("V")
K = TypeVar("K")


class DerivedFunction(Generic[S, P, V]):
    """A function that remembers; see `derived`."""

    def __init__(self, function: Callable[Concatenate[S, P], V]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._single = len(inspect.signature(function).parameters) == 2  # where it reads, and one more

    def __call__(self, source: S, /, *args: P.args, **kwargs: P.kwargs) -> V:
        """Return the value, computed if it must be; raise what the function raises."""
        # Asked a hundred times for each group of proxies: one frame, and one more where there is no node yet.
        graph = source.graph
        family = graph.families(self).get(source) or self.family(source)
        key = args[0] if self._single and len(args) == 1 and not kwargs else self._key(*args, **kwargs)
        node = family.nodes.get(key)
        value: V = graph.answer(family.node(key) if node is None else node)
        return value

    def is_known(self, source: S, /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Say whether the value is remembered and nothing behind it has changed; nothing is computed."""
        found = self.family(source).nodes.get(self._key(*args, **kwargs))
        return found is not None and not found.stale

    def node(self, source: S, /, *args: P.args, **kwargs: P.kwargs) -> Derivation:
        """Return what remembers the value for these arguments."""
        return self.family(source).node(self._key(*args, **kwargs))

    def _key(self, *args: P.args, **kwargs: P.kwargs) -> Hashable:
        if kwargs:
            raise TypeError(f"{self._function.__qualname__}: arguments of derived values are positional")
        (key,) = args if self._single else (args,)
        return key

    def family(self, source: S) -> Function:
        """Return all that is remembered of values that read there."""
        families = source.graph.families(self)
        family = families.get(source)
        if family is None:
            family = families[source] = Function(self.name, self._function, (source,), single=self._single)
        return family


def derived(function: Callable[Concatenate[S, P], V]) -> DerivedFunction[S, P, V]:
    """Make a function derived: its value is remembered by its arguments, which must be hashable.

    The first argument is where it reads: tables and indexes of one graph, and other derived values. The
    function is pure, and what it returns is never changed afterwards; an error that it raises is remembered
    and raised again. Whatever else it looks at must be as constant as its code. Values that are equal must be
    interchangeable: of two such the earlier one stays.
    """
    return DerivedFunction(function)


class ObservedValues(Generic[K, V]):
    """The values of one derived function that somebody outside wants, by key; says which were touched."""

    def __init__(self, function: DerivedFunction[S, [K], V], source: S) -> None:
        self._graph = source.graph
        self._wanted = function.family(source)
        self._changed: dict[Derivation, None] = {}

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def add(self, key: K, *, touched: bool = True) -> None:
        """Want the value of a key; it counts as touched, but where whoever wants it asks for it at once."""
        if key not in self:
            node = self._wanted.node(key)
            self._graph.keep(node, self._changed)
            if touched:
                self._changed[node] = None
            else:
                self._changed.pop(node, None)

    def discard(self, key: K) -> None:
        """Want the value of a key no more."""
        if (node := self._find(key)) is not None:
            self._graph.let_go(node)

    def value(self, key: K) -> V:
        """Return the value of a key that is wanted, or raise its error; KeyError for another."""
        if (node := self._find(key)) is None:
            raise KeyError(key)
        return cast("V", self._graph.answer(node))

    def take_changed(self) -> tuple[K, ...]:
        """Return the keys whose values may have changed since the last time; who does not ask misses more."""
        changed = tuple(cast("K", node.key) for node in self._changed)
        self._changed.clear()
        return changed

    def _find(self, key: Hashable) -> Derivation | None:
        """Return what remembers the value of a key, if that is wanted here."""
        node: Derivation | None = self._wanted.nodes.get(key)
        return node if node is not None and node.dirty_set is self._changed else None


class ObservedTable(ObservedValues[K, V]):
    """The values of one derived function for every key of a table; a key that has gone counts as touched."""

    def __init__(self, function: DerivedFunction[S, [K], V], source: S, table: Table[K, Any]) -> None:
        super().__init__(function, source)
        self._gone: dict[K, None] = {}
        table.followed(self)

    def follow(self, key: K, old: object, new: object) -> None:
        """Take note of a key that comes or goes."""
        if old is ABSENT:
            self._gone.pop(key, None)
            self.add(key)
        elif new is ABSENT:
            self.discard(key)
            self._gone[key] = None

    def take_changed(self) -> tuple[K, ...]:
        """Return the keys that came or went, or whose values may have changed, since the last time."""
        gone = tuple(self._gone)
        self._gone.clear()
        return (*gone, *super().take_changed())
