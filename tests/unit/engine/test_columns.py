"""Tests of columns: a reader of one part of a value is not touched by changes of other parts."""

from dataclasses import dataclass, field

import pytest

from meshwright.engine.derived import ObservedValues, derived
from meshwright.engine.graph import Graph, sources
from meshwright.engine.table import Column, Table


@dataclass(eq=False)
class Town:
    """Shops, each with its street and its price."""

    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        self.shops: Table[str, tuple[str, int]] = Table(self.graph, "shops")
        self.graph.apply([self.shops.set("baker", ("main street", 2))])
        self.prices: Table[str, int] = Column(self.graph, self.shops, lambda shop: shop[1])


@derived
def dear(town: Town, name: str) -> bool:
    """Return whether a shop's price is above 5."""
    return town.prices.get(name, 0) > 5


@derived
def shops(town: Town) -> tuple[str, ...]:
    """Return the names of all shops with a price."""
    return tuple(town.prices)


def test_column_follows_added_changed_and_removed_rows_of_its_table() -> None:
    """Rows from before the column's creation are included too."""
    town = Town()
    assert dict(town.prices) == {"baker": 2}
    town.graph.apply([town.shops.set("baker", ("main street", 7)), town.shops.set("smith", ("lane", 1))])
    assert dict(town.prices) == {"baker": 7, "smith": 1}
    assert (dear(town, "baker"), dear(town, "smith"), shops(town)) == (True, False, ("baker", "smith"))
    town.graph.apply([town.shops.remove("baker")])
    assert (dear(town, "baker"), shops(town)) == (False, ("smith",))


def test_row_whose_part_is_none_is_absent_from_the_column() -> None:
    """A part may become None, and its row may be removed afterwards without an error."""
    town = Town()
    streets: Table[str, str] = Column(town.graph, town.shops, lambda shop: shop[0] or None)
    assert dict(streets) == {"baker": "main street"}
    town.graph.apply([town.shops.set("baker", ("", 2))])
    assert dict(streets) == {}
    town.graph.apply([town.shops.remove("baker")])
    assert dict(streets) == {}


@pytest.mark.parametrize(("price", "computed"), [(2, 0), (7, 1)])
def test_reader_of_a_column_is_touched_only_if_its_part_changes(price: int, computed: int) -> None:
    """A shop that moves does not even mark the reader of its price, unless the price changes too."""
    town = Town()
    seen: ObservedValues[str, bool] = ObservedValues(dear, town)
    seen.add("baker")
    assert not seen.value("baker")
    assert seen.take_changed() == ("baker",)
    before = town.graph.computed, town.graph.reused
    town.graph.apply([town.shops.set("baker", ("river lane", price))])
    assert seen.take_changed() == ("baker",) * computed
    assert seen.value("baker") is (price > 5)
    assert (town.graph.computed - before[0], town.graph.reused - before[1]) == (computed, 0)


def test_read_of_a_column_is_recorded_as_a_read_of_its_table() -> None:
    """The sources of a value have the table's name, because users know tables and not columns."""
    town = Town()
    assert not dear(town, "baker")
    assert [(source.origin, source.key) for source in sources(dear.node(town, "baker"))] == [
        ("shops", "baker")
    ]
