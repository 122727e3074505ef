"""Declarations of tables, indexes and firewalls, made once for each source.

They are made in the order of their declaration, which is the order of imports: a part can only read parts
from modules imported by its own module, so a part never reads a later one.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from meshwright.engine.derived import ComputationSource, DerivedFunction
from meshwright.engine.firewall import Firewall, Firewalls, MappingFirewall
from meshwright.engine.index import DerivedIndex, Index
from meshwright.engine.table import Column, Table


class DeclaringSource(ComputationSource, Protocol):
    """A source with declared parts; `Declarations.make` fills `made`."""

    @property
    def made(self) -> "dict[DeclaredPart[Any, Any], Any]":
        """Return the tables, indexes and firewalls made so far for this source."""
        ...


S = TypeVar("S", bound=DeclaringSource)
T = TypeVar("T")
E = TypeVar("E")
K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")


class DeclaredPart(Generic[S, T]):
    """A declared part; a call with a source returns the source's own part.

    For example, `workloads = declarations.table("workloads")` declares a table, and `workloads(view)` returns
    the table of one view.
    """

    __slots__ = ("_declarations", "make", "name")

    def __init__(self, declarations: "Declarations[S]", name: str, make: Callable[[S], T]) -> None:
        self._declarations = declarations
        self.name = name
        self.make = make

    def __repr__(self) -> str:
        return f"<declared {self.name}>"

    def __call__(self, source: S) -> T:
        """Return the source's own table, index or firewall for this declaration."""
        result = source.made.get(self)
        if result is None:  # declared by a module that was imported after the source was made
            with source.graph.lock:
                self._declarations.make(source)
                source.graph.settle()
            result = source.made[self]
        return cast("T", result)


class Declarations(Generic[S]):
    """All tables, indexes and firewalls declared for one kind of source, in the order of declaration."""

    def __init__(self) -> None:
        self._declared: list[DeclaredPart[S, Any]] = []

    def declare(self, name: str, make: Callable[[S], T]) -> DeclaredPart[S, T]:
        """Declare a table, index or firewall; `make` creates the one of a given source."""
        declared = DeclaredPart(self, name, make)
        self._declared.append(declared)
        return declared

    def make(self, source: S) -> None:
        """Make the missing parts of a source, in order.

        The next change of the source's graph brings them up to date.
        """
        for declared_part in self._declared:
            if declared_part not in source.made:
                source.made[declared_part] = declared_part.make(source)

    def table(self, name: str) -> DeclaredPart[S, Table[Any, Any]]:
        """Declare a table of inputs."""
        return self.declare(name, lambda source: Table(source.graph, name))

    def column(
        self, table: Callable[[S], Table[K, V]], part: Callable[[V], T | None]
    ) -> DeclaredPart[S, Table[K, T]]:
        """Declare one part of a table's values, to be read separately; see `engine.table.Column`."""
        return self.declare("a column", lambda source: Column(source.graph, table(source), part))

    def index(
        self, name: str, table: Callable[[S], Table[K, V]], entries_of: Callable[[K, V], Collection[E]]
    ) -> DeclaredPart[S, Index[E, K, V]]:
        """Declare an index over the inputs themselves; see `engine.index.Index`."""
        return self.declare(name, lambda source: Index(source.graph, name, table(source), entries_of))

    def derived_index(
        self, name: str, table: Callable[[S], Table[K, V]], entries_of: Callable[[S, K], Collection[E]]
    ) -> DeclaredPart[S, DerivedIndex[E, K, V]]:
        """Declare an index over values derived from a table's keys; see `engine.index.DerivedIndex`."""

        def make(source: S) -> DerivedIndex[E, K, V]:
            return DerivedIndex(source.graph, name, table(source), lambda key: entries_of(source, key))

        return self.declare(name, make)

    def firewall(self, function: DerivedFunction[S, [], V]) -> DeclaredPart[S, Firewall[V]]:
        """Declare a derived value as a firewall; see `engine.firewall.Firewall`."""
        return self.declare(function.name, lambda source: Firewall(source.graph, function, source))

    def mapping_firewall(
        self, function: DerivedFunction[S, [], Mapping[K, V]]
    ) -> "DeclaredPart[S, MappingFirewall[K, V]]":
        """Declare a derived mapping as a firewall read by key.

        See `engine.firewall.MappingFirewall`.
        """
        return self.declare(function.name, lambda source: MappingFirewall(source.graph, function, source))

    def firewalls(self, function: DerivedFunction[S, P, V]) -> "DeclaredPart[S, Firewalls[P, V]]":
        """Declare a derived function with a firewall per value; see `engine.firewall.Firewalls`."""
        return self.declare(function.name, lambda source: Firewalls(source.graph, function, source))
