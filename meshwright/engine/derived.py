"""Derived values: results of functions, cached with the reads behind them until one of these changes."""

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from meshwright.engine.graph import Graph
from meshwright.engine.node import ABSENT, Derivation, Function
from meshwright.engine.table import Table


class ComputationSource(Protocol):
    """Source of inputs for derived values. A source is hashable and has a graph."""

    @property
    def graph(self) -> Graph:
        """Return the graph with the cached derived values of this source."""
        ...


S = TypeVar("S", bound=ComputationSource)
P = ParamSpec("P")
V = TypeVar("V")
K = TypeVar("K")


class DerivedFunction(Generic[S, P, V]):
    """A function with cached results; see `derived`."""

    def __init__(self, function: Callable[Concatenate[S, P], V]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._single = len(inspect.signature(function).parameters) == 2  # the source, and one argument

    def __call__(self, source: S, /, *args: P.args, **kwargs: P.kwargs) -> V:
        """Return the derived value, computed if necessary; raise the function's error."""
        # Called a hundred times for each group of proxies, so written for few stack frames: one frame, and a
        # second one if the node does not exist yet.
        graph = source.graph
        family = graph.families(self).get(source) or self.family(source)
        key = args[0] if self._single and len(args) == 1 and not kwargs else self._key(*args, **kwargs)
        node = family.nodes.get(key)
        value: V = graph.answer(family.node(key) if node is None else node)
        return value

    def is_known(self, source: S, /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Return whether the value for these arguments is cached and up to date. Computes no value."""
        result = self.family(source).nodes.get(self._key(*args, **kwargs))
        return result is not None and not result.stale

    def node(self, source: S, /, *args: P.args, **kwargs: P.kwargs) -> Derivation:
        """Return the graph node of the cached value for these arguments."""
        return self.family(source).node(self._key(*args, **kwargs))

    def _key(self, *args: P.args, **kwargs: P.kwargs) -> Hashable:
        if kwargs:
            raise TypeError(f"{self._function.__qualname__}: arguments of derived values are positional")
        (key,) = args if self._single else (args,)
        return key

    def family(self, source: S) -> Function:
        """Return all cached values of this function for one source."""
        families = source.graph.families(self)
        family = families.get(source)
        if family is None:
            family = families[source] = Function(self.name, self._function, (source,), single=self._single)
        return family


def derived(function: Callable[Concatenate[S, P], V]) -> DerivedFunction[S, P, V]:
    """Make a function derived: results are cached by the arguments, which must be hashable.

    The first argument is the source of its reads: tables and indexes of one graph, and other derived values.
    The function must be pure, and the result must never be changed afterwards. An error is cached like a
    value, and raised again. Everything else that the function reads must be constant. Equal results must be
    interchangeable, because the earlier one is kept. For example:

        @derived
        def port_count(view: View, key: ServiceKey) -> int:
            return len(view.services[key].ports)
    """
    return DerivedFunction(function)


class ObservedValues(Generic[K, V]):
    """Values of one derived function wanted from outside, by key, with the set of touched ones."""

    def __init__(self, function: DerivedFunction[S, [K], V], source: S) -> None:
        self._graph = source.graph
        self._wanted = function.family(source)
        self._changed: dict[Derivation, None] = {}

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def add(self, key: K, *, touched: bool = True) -> None:
        """Keep the value of a key current. The key counts as touched unless the caller reads it at once."""
        if key not in self:
            node = self._wanted.node(key)
            self._graph.keep(node, self._changed)
            # `keep` has added a stale node; a caller that reads the value at once does not need the entry.
            if touched:
                self._changed[node] = None
            else:
                self._changed.pop(node, None)

    def discard(self, key: K) -> None:
        """Stop keeping the value of a key current, after an earlier `add`."""
        if (node := self._find(key)) is not None:
            self._graph.let_go(node)

    def value(self, key: K) -> V:
        """Return the value of an added key, or raise the cached error. Raises KeyError for any other key."""
        if (node := self._find(key)) is None:
            raise KeyError(key)
        return cast("V", self._graph.answer(node))

    def take_changed(self) -> tuple[K, ...]:
        """Return the keys whose values may have changed since the last call.

        A changed key is reported again only after a read of the value.
        """
        changed = tuple(cast("K", node.key) for node in self._changed)
        self._changed.clear()
        return changed

    def _find(self, key: Hashable) -> Derivation | None:
        """Return the node of a key if the key was added here."""
        node: Derivation | None = self._wanted.nodes.get(key)
        return node if node is not None and node.dirty_set is self._changed else None


class ObservedTable(ObservedValues[K, V]):
    """Values of one derived function for every key of a table; a removed key counts as touched."""

    def __init__(self, function: DerivedFunction[S, [K], V], source: S, table: Table[K, Any]) -> None:
        super().__init__(function, source)
        self._gone: dict[K, None] = {}
        table.followed(self)

    def follow(self, key: K, old: object, new: object) -> None:
        """Start to keep the value of an added table key current, or stop for a removed key."""
        if old is ABSENT:
            self._gone.pop(key, None)
            self.add(key)
        elif new is ABSENT:
            self.discard(key)
            self._gone[key] = None

    def take_changed(self) -> tuple[K, ...]:
        """Return the table keys added, removed or with a possibly changed value since the last call."""
        gone = tuple(self._gone)
        self._gone.clear()
        return (*gone, *super().take_changed())
