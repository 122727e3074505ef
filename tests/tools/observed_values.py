"""A derived value for a test: kept until it is released, with a flag for changes."""

from typing import Generic, TypeVar, cast

from meshwright.engine.derived import ComputationSource, DerivedFunction, P
from meshwright.engine.graph import sources
from meshwright.engine.node import Derivation, Source

S = TypeVar("S", bound=ComputationSource)
V = TypeVar("V")


class Pin(Generic[V]):
    """One derived value with any arguments; `meshwright.engine.derived.ObservedValues` keeps many."""

    def __init__(
        self, function: DerivedFunction[S, P, V], source: S, /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        self._graph = source.graph
        self._changed: dict[Derivation, None] = {}
        self.node = function.node(source, *args, **kwargs)
        self._graph.keep(self.node, self._changed)

    def value(self) -> V:
        """Return the value, or raise its error."""
        return cast("V", self._graph.answer(self.node))

    def release(self) -> None:
        """Stop keeping it."""
        self._graph.let_go(self.node)

    def take_touched(self) -> bool:
        """Return whether a change may have affected the value since the last call; initially True."""
        touched = bool(self._changed)
        self._changed.clear()
        return touched

    def sources(self) -> tuple[Source, ...]:
        """Return the inputs from which the value was derived, in the order of reading."""
        return tuple(sources(self.node))
