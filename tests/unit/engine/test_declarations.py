"""Tests of declarations: each declared part is built once for each source, in order."""

from dataclasses import dataclass, field
from typing import Any, Final

from meshwright.engine.declarations import Declarations, DeclaredPart
from meshwright.engine.derived import derived
from meshwright.engine.graph import Graph
from meshwright.engine.table import Table


@dataclass(eq=False)
class Source:
    """A source of one table, with its declared parts."""

    graph: Graph = field(default_factory=Graph)
    made: dict[DeclaredPart[Any, Any], Any] = field(default_factory=dict)


DECLARED: Final = Declarations[Source]()
numbers: Final[DeclaredPart[Source, Table[str, int]]] = DECLARED.table("numbers")


def _parity(_: str, number: int) -> tuple[str, ...]:
    return ("odd" if number % 2 else "even",)


by_parity: Final = DECLARED.index("numbers by parity", numbers, _parity)


@derived
def odd(source: Source) -> int:
    """Return the number of odd numbers."""
    return len(by_parity(source).get("odd", ()))


count: Final = DECLARED.firewall(odd)


def _larger(source: Source, key: str) -> tuple[bool, ...]:
    return (numbers(source)[key] > count(source).value(),)


larger: Final = DECLARED.derived_index("numbers larger than the count of odd ones", numbers, _larger)


def _source(**values: int) -> Source:
    source = Source()
    DECLARED.make(source)
    source.graph.apply(numbers(source).set(key, value) for key, value in values.items())
    return source


def test_each_source_has_its_own_declared_parts() -> None:
    """One declaration finds different entries in different sources, and the same object in one source."""
    one, other = _source(a=1, b=2, c=3), _source(a=2)
    assert by_parity(one)["odd"] == ("a", "c")
    assert by_parity(one).lookup("odd") == (1, 3)
    assert by_parity(one).lookup("neither") == ()
    assert "odd" not in by_parity(other)
    assert by_parity(one) is by_parity(one)


def test_change_passes_through_all_stages_in_order() -> None:
    """The derived index reads the firewall, and the firewall reads the first index."""
    source = _source(a=1, b=2, c=3)
    assert larger(source) == {False: ("a", "b"), True: ("c",)}
    source.graph.apply([numbers(source).set("a", 4)])
    assert count(source).value() == 1
    assert larger(source) == {True: ("a", "b", "c")}


def test_later_declaration_includes_existing_rows() -> None:
    """A module with declarations may be imported after sources exist."""
    source = _source(a=1, b=2)
    late = DECLARED.index("numbers by value", numbers, lambda _, number: (number,))
    later = DECLARED.derived_index(
        "numbers by twice their value", numbers, lambda of, key: (2 * numbers(of)[key],)
    )
    assert later(source) == {2: ("a",), 4: ("b",)}
    assert late(source) == {1: ("a",), 2: ("b",)}
    source.graph.apply([numbers(source).remove("a"), numbers(source).set("c", 5)])
    assert later(source) == {4: ("b",), 10: ("c",)}
    assert late(source) == {2: ("b",), 5: ("c",)}
