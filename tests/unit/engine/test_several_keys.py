"""Tests of index entries with several keys, which are found without a look at the others."""

import random
from dataclasses import dataclass, field

from meshwright.engine.derived import ObservedValues, derived
from meshwright.engine.graph import Graph
from meshwright.engine.index import Index
from meshwright.engine.table import Table


@dataclass(eq=False)
class Town:
    """Shops by street."""

    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        self.shops: Table[str, str] = Table(self.graph, "shops")
        self.by_street = Index(self.graph, "shops by street", self.shops, lambda _, street: (street,))


@derived
def busy(town: Town, _: str) -> tuple[str, ...]:
    """Return the streets with more than one shop."""
    return tuple(sorted(town.by_street.several()))


def test_entries_with_several_keys_follow_random_changes() -> None:
    """After each change of a random town, `several` equals the entries of the index with two keys or more."""
    chance = random.Random(1)  # noqa: S311 - dice
    town = Town()
    for _ in range(300):
        name = chance.choice("abcdef")
        gone = chance.random() < 0.3
        edit = town.shops.remove(name) if gone else town.shops.set(name, chance.choice("xyz"))
        town.graph.apply([edit])
        result = {street for street, names in town.by_street.items() if len(names) > 1}
        assert set(busy(town, "")) == result


def test_third_key_of_an_entry_does_not_touch_readers_of_several() -> None:
    """Only an entry that gets its second key, or loses it, changes the set of such entries."""
    town = Town()
    town.graph.apply([town.shops.set("a", "x"), town.shops.set("b", "x")])
    seen: ObservedValues[str, tuple[str, ...]] = ObservedValues(busy, town)
    seen.add("")
    assert (seen.value(""), seen.take_changed()) == (("x",), ("",))
    town.graph.apply([town.shops.set("c", "x"), town.shops.set("d", "y")])
    assert seen.take_changed() == ()
    town.graph.apply([town.shops.set("c", "y")])
    assert (seen.take_changed(), seen.value("")) == (("",), ("x", "y"))


class Street(str):
    """A street that counts how often it is compared with another."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """Compare, and count the comparison."""
        Street.compared += 1
        return super().__eq__(other)


def test_changed_key_of_a_thousand_entries_needs_few_comparisons() -> None:
    """Entries are looked up and not compared in pairs, because a policy may name thousands of callers."""
    graph = Graph()
    chains: Table[str, tuple[Street, ...]] = Table(graph, "chains of shops")
    by_street = Index(graph, "chains by street", chains, lambda _, streets: streets)

    def streets(last: str) -> tuple[Street, ...]:
        return tuple(map(Street, (*map(str, range(1000)), last)))

    graph.apply([chains.set("bakers", streets("old"))])
    Street.compared = 0
    graph.apply([chains.set("bakers", streets("new"))])
    assert Street.compared < 10_000
    assert (len(by_street), by_street.get(Street("old")), by_street[Street("new")]) == (
        1001,
        None,
        ("bakers",),
    )
