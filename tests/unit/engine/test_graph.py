"""Tests of the engine alone: recomputation, forgetting, indexes, firewalls, and errors."""

import itertools
import random
import sys
from collections.abc import Collection, Iterator, Mapping

import pytest

from meshwright.engine.derived import derived
from meshwright.engine.errors import BusyError, CycleError, OrderError
from meshwright.engine.firewall import Firewall, Firewalls, MappingFirewall
from meshwright.engine.graph import Graph
from meshwright.engine.index import DerivedIndex, Index
from meshwright.engine.node import FEW, Derivation, Family, Function, Source
from meshwright.engine.sorted_keys import COPIED, SortedKeys
from meshwright.engine.table import Table
from tests.tools.observed_values import Pin


class Sheet:
    """Numbers by name, and the functions that ran, in order."""

    def __init__(self, **numbers: int) -> None:
        self.graph = Graph()
        self.numbers: Table[str, int] = Table(self.graph, "numbers")
        self.ran: list[str] = []
        self.put(**numbers)

    def put(self, **numbers: int) -> None:
        """Set numbers in one change."""
        self.graph.apply([self.numbers.set(name, number) for name, number in numbers.items()])

    def drop(self, name: str) -> None:
        """Remove a number."""
        self.graph.apply([self.numbers.remove(name)])

    def took(self) -> list[str]:
        """Return the functions that ran since the last call."""
        ran, self.ran = self.ran, []
        return ran


@derived
def parity(sheet: Sheet, name: str) -> int:
    """Return a number's last bit, -1 for none."""
    sheet.ran.append(f"parity {name}")
    return sheet.numbers.get(name, -1) % 2 if name in sheet.numbers else -1


@derived
def described(sheet: Sheet, name: str) -> str:
    """Return a number's description."""
    sheet.ran.append(f"described {name}")
    return {0: "even", 1: "odd", -1: "none"}[parity(sheet, name)]


@derived
def names(sheet: Sheet) -> tuple[str, ...]:
    """Return the names."""
    sheet.ran.append("names")
    return tuple(sheet.numbers)


@derived
def half(sheet: Sheet, name: str) -> int:
    """Return half of an even number; raise ValueError for an odd one."""
    sheet.ran.append(f"half {name}")
    if sheet.numbers[name] % 2:
        raise ValueError(f"{name} is odd")
    return sheet.numbers[name] // 2


@derived
def quarter(sheet: Sheet, name: str) -> int:
    """Return a quarter of a number."""
    sheet.ran.append(f"quarter {name}")
    return half(sheet, name) // 2


def test_value_is_computed_once_until_a_read_input_changes() -> None:
    """Neither a second read nor a change of inputs that the value has not read runs a function."""
    sheet = Sheet(a=1, b=2)
    assert [described(sheet, "a"), described(sheet, "a")] == ["odd", "odd"]
    assert sheet.took() == ["described a", "parity a"]
    Pin(described, sheet, "a")
    sheet.put(b=3, c=4)
    assert described(sheet, "a") == "odd"
    assert sheet.took() == []


def test_equal_recomputed_value_stops_the_change() -> None:
    """The parity is computed again and stays equal, so its reader is reused and does not run."""
    sheet = Sheet(a=1)
    Pin(described, sheet, "a").value()
    sheet.took()
    sheet.put(a=3)
    before = sheet.graph.computed, sheet.graph.stopped, sheet.graph.reused
    assert described(sheet, "a") == "odd"
    assert sheet.took() == ["parity a"]
    after = sheet.graph.computed, sheet.graph.stopped, sheet.graph.reused
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 1, 1]


def test_input_set_to_its_current_value_is_no_change() -> None:
    """Its readers are not touched at all."""
    sheet = Sheet(a=1)
    pin = Pin(described, sheet, "a")
    pin.value()
    assert pin.take_touched()
    sheet.put(a=1)
    assert not pin.take_touched()


def test_read_of_an_absent_key_is_recorded() -> None:
    """The reader follows when the key is added and when it is removed again."""
    sheet = Sheet()
    pin = Pin(described, sheet, "a")
    assert pin.value() == "none"
    sheet.put(a=2)
    assert pin.value() == "even"
    sheet.drop("a")
    assert pin.value() == "none"


def test_iteration_reads_the_set_of_keys_and_no_values() -> None:
    """A new value of an existing key does not run the reader; a new key does."""
    sheet = Sheet(b=1)
    pin = Pin(names, sheet)
    assert pin.value() == ("b",)
    sheet.put(b=2)
    sheet.took()
    assert pin.value() == ("b",)
    assert sheet.took() == []
    sheet.put(a=1)
    assert pin.value() == ("a", "b")


def test_error_is_remembered_like_a_value() -> None:
    """An error is raised for every reader without another run, and disappears with its cause."""
    sheet = Sheet(a=1)
    pin = Pin(quarter, sheet, "a")
    for _ in range(2):
        with pytest.raises(ValueError, match="a is odd"):
            pin.value()
    assert sheet.took() == ["quarter a", "half a"]
    sheet.put(a=3)
    with pytest.raises(ValueError, match="a is odd"):
        pin.value()
    assert sheet.took() == ["half a"]
    sheet.put(a=4)
    assert pin.value() == 1


def test_remembered_error_keeps_no_traceback() -> None:
    """A traceback would keep every local variable of the computation in memory."""
    sheet = Sheet(a=1)
    pin = Pin(quarter, sheet, "a")
    with pytest.raises(ValueError, match="odd"):
        pin.value()
    sheet.put(a=3)
    with pytest.raises(ValueError, match="odd") as caught:
        half(sheet, "a")
    assert pin.node.error is not None
    assert len(caught.traceback) < 6


@derived
def first(sheet: Sheet) -> int:
    """Return 1 with an input `a`, otherwise the second value."""
    return 1 if "a" in sheet.numbers else second(sheet)


@derived
def second(sheet: Sheet) -> int:
    """Return the third value; catch the error of a cycle, which must not hide the cycle."""
    try:
        return third(sheet)
    except CycleError:
        return 0


@derived
def third(sheet: Sheet) -> int:
    """Return the first value."""
    return first(sheet)


@pytest.mark.parametrize("begin", [first, second, third])
def test_cycle_error_is_the_same_for_every_member(begin: object) -> None:
    """Every member has the error with the same path, even one that catches it; it ends with the cycle."""
    sheet = Sheet()
    pins = [Pin(function, sheet) for function in (first, second, third)]
    order = sorted(pins, key=lambda pin: pin.node.family.function is not getattr(begin, "__wrapped__", None))
    answer = set()
    for pin in order:
        with pytest.raises(CycleError) as caught:
            pin.value()
        answer.add(str(caught.value))
    (one,) = answer
    assert [part.rpartition(".")[2].partition("(")[0] for part in one.split(" needs ")] == [
        "first",
        "second",
        "third",
        "first",
    ]
    sheet.put(a=1)
    assert [pin.value() for pin in order] == [1, 1, 1]
    sheet.drop("a")
    with pytest.raises(CycleError):
        order[0].value()


def test_only_pins_that_a_change_may_concern_are_touched() -> None:
    """A new pin is touched at once, so that its value is read for the first time."""
    sheet = Sheet(a=1, b=1)
    of_a, of_b = Pin(described, sheet, "a"), Pin(described, sheet, "b")
    assert [of_a.take_touched(), of_b.take_touched()] == [True, True]
    assert [of_a.value(), of_b.value()] == ["odd", "odd"]
    sheet.put(a=2)
    assert [of_a.take_touched(), of_b.take_touched()] == [True, False]
    assert [of_a.take_touched(), of_b.take_touched()] == [False, False]


def test_value_without_a_reader_is_forgotten_with_the_next_change() -> None:
    """Values that only the forgotten value had read are forgotten too."""
    sheet = Sheet(a=1)
    pin = Pin(quarter, sheet, "b")
    with pytest.raises(KeyError):
        pin.value()
    described(sheet, "a")
    assert sheet.graph.size() == 4
    sheet.put(c=1)
    assert sheet.graph.size() == 2
    pin.release()
    sheet.put(c=2)
    assert sheet.graph.size() == 0
    assert sheet.numbers._cells.nodes == {}


def test_many_unread_values_are_forgotten_in_parts() -> None:
    """`collect` removes at most the given number of values at a time; a pinned value stays."""
    sheet = Sheet(**{f"n{number}": number for number in range(10)})
    for number in range(10):
        described(sheet, f"n{number}")
    described(sheet, "n0")
    pin = Pin(described, sheet, "n9")
    sizes = [sheet.graph.size()]
    while sheet.graph.collect(4):
        sizes.append(sheet.graph.size())
    assert sizes[0] == 20
    assert all(before - after <= 4 for before, after in itertools.pairwise(sizes))
    assert sheet.graph.size() == 2
    sheet.took()
    assert pin.value() == "odd"
    assert sheet.took() == []


def test_collect_during_a_computation_is_an_error() -> None:
    """The reads of a running function are known only at its end, so they could be forgotten."""
    sheet = Sheet(a=1)

    @derived
    def tidying(sheet: Sheet) -> None:
        sheet.graph.collect()

    with pytest.raises(BusyError, match=r"while .*tidying"):
        tidying(sheet)


def test_pin_returns_the_inputs_that_its_value_was_computed_from() -> None:
    """Inputs are found through values in between, and absent inputs count."""
    sheet = Sheet(a=1)
    pin = Pin(described, sheet, "z")
    pin.value()
    assert [(source.origin, source.key) for source in pin.sources()] == [("numbers", "z")]


def test_change_of_inputs_during_a_computation_is_an_error() -> None:
    """A function that changes inputs raises BusyError, and the inputs stay as they were."""
    sheet = Sheet(a=1)

    @derived
    def meddling(sheet: Sheet) -> None:
        sheet.put(a=2)

    with pytest.raises(BusyError, match=r"while .*meddling"):
        meddling(sheet)
    assert sheet.numbers["a"] == 1


def test_function_that_returns_an_iterator_is_an_error() -> None:
    """An iterator could be read only once, but a remembered value is read many times."""

    @derived
    def counting(sheet: Sheet) -> Iterator[int]:
        return iter([1])

    with pytest.raises(TypeError, match=r"counting.* returned an iterator"):
        counting(Sheet())


def test_keyword_arguments_are_refused() -> None:
    """With keywords, one value could be remembered under two keys."""
    with pytest.raises(TypeError, match="positional"):
        parity(Sheet(), name="a")


def test_change_of_an_index_entry_touches_only_its_readers() -> None:
    """Entries follow the inputs, and a change of even numbers does not run the reader of odd ones."""
    sheet = Sheet(a=1, b=2, c=3)
    index: Index[int, str, int] = Index(sheet.graph, "bits", sheet.numbers, lambda _, value: (value % 2,))

    @derived
    def odd(sheet: Sheet) -> tuple[str, ...]:
        sheet.ran.append("odd")
        return index.get(1, ())

    pin = Pin(odd, sheet)
    assert pin.value() == ("a", "c")
    sheet.put(b=4, d=6, a=5)
    assert pin.value() == ("a", "c")
    assert sheet.took() == ["odd"]
    sheet.drop("a")
    assert pin.value() == ("c",)
    sheet.drop("c")
    assert pin.value() == ()
    assert dict(index) == {0: ("b", "d")}


def test_watched_index_returns_the_entries_whose_keys_changed() -> None:
    """All entries are returned first; a value that keeps its entry is no change."""
    sheet = Sheet(a=1, b=2)
    index: Index[int, str, int] = Index(sheet.graph, "bits", sheet.numbers, lambda _, value: (value % 2,))
    index.watch()
    assert sorted(index.take_changed()) == [0, 1]
    sheet.put(a=3)
    assert index.take_changed() == ()
    sheet.put(a=4)
    assert sorted(index.take_changed()) == [0, 1]


def test_derived_index_follows_the_reads_of_its_function() -> None:
    """A key whose function raises is in no entry but in `failures`, until the cause disappears."""
    sheet = Sheet(a=2, b=4)
    index: DerivedIndex[int, str, int] = DerivedIndex(
        sheet.graph, "halves", sheet.numbers, lambda name: (half(sheet, name),)
    )
    sheet.put(c=4)
    assert dict(index) == {1: ("a",), 2: ("b", "c")}
    sheet.put(b=5)
    assert dict(index) == {1: ("a",), 2: ("c",)}
    assert {name: str(error) for name, error in index.failures().items()} == {"b": "b is odd"}
    sheet.put(b=2)
    assert (dict(index), dict(index.failures())) == ({1: ("a", "b"), 2: ("c",)}, {})


def test_reader_of_a_firewall_is_untouched_while_its_value_stays() -> None:
    """A change of the sum touches the reader only when the comparison with 10 changes."""
    sheet = Sheet(a=1)

    @derived
    def is_small(sheet: Sheet) -> bool:
        return sum(sheet.numbers.values()) < 10

    wall = Firewall(sheet.graph, is_small, sheet)

    @derived
    def reader(sheet: Sheet) -> str:
        return f"small: {wall.value()}"

    pin = Pin(reader, sheet)
    assert pin.value() == "small: True"
    assert pin.take_touched()
    sheet.put(a=2)
    assert not pin.take_touched()
    sheet.put(a=20)
    assert pin.take_touched()
    assert pin.value() == "small: False"


def test_firewalls_by_argument_are_independent_and_end_with_their_readers() -> None:
    """A reader of one firewall is untouched while that value stays, whatever the other ones do."""
    sheet = Sheet(a=1, b=1)

    @derived
    def is_small(sheet: Sheet, name: str) -> bool:
        return sheet.numbers[name] < 10

    walls = Firewalls(sheet.graph, is_small, sheet)

    @derived
    def reader(sheet: Sheet, name: str) -> str:
        return f"small: {walls.value(name)}" if name in tuple(sheet.numbers) else "gone"

    pins = {name: Pin(reader, sheet, name) for name in "ab"}
    assert [pins[name].value() for name in "ab"] == ["small: True"] * 2
    assert [pins[name].take_touched() for name in "ab"] == [True, True]
    sheet.put(a=2, b=3)
    assert [pins[name].take_touched() for name in "ab"] == [False, False]
    sheet.put(a=20)
    assert (pins["a"].take_touched(), pins["b"].take_touched()) == (True, False)
    assert (pins["a"].value(), walls.value("b")) == ("small: False", True)
    held = sheet.graph.size()
    sheet.graph.apply([sheet.numbers.remove("a")])
    assert pins["a"].value() == "gone"
    sheet.graph.apply([])
    sheet.graph.apply([])
    assert sheet.graph.size() == held - 1, "whether it is small is nobody's any more"
    sheet.put(a=3)
    assert pins["a"].value() == "small: True"


def test_error_behind_a_firewall_is_raised_for_each_reader() -> None:
    """The error is raised at each read, other arguments are unaffected, and it ends with its cause."""
    sheet = Sheet(a=1, b=2)
    walls = Firewalls(sheet.graph, half, sheet)
    for _ in range(2):
        with pytest.raises(ValueError, match="a is odd"):
            walls.value("a")
    assert walls.value("b") == 1
    sheet.put(a=4)
    assert walls.value("a") == 2


def test_changed_key_of_a_mapping_firewall_touches_only_its_readers() -> None:
    """Changes of other keys touch no reader of this key; an error touches all readers."""
    sheet = Sheet(a=1, b=2)

    @derived
    def large(sheet: Sheet) -> Mapping[str, int]:
        if "bad" in sheet.numbers:
            raise ValueError("bad")
        return {name: number for name, number in sheet.numbers.items() if number > 1}

    wall = MappingFirewall(sheet.graph, large, sheet)

    @derived
    def reader(sheet: Sheet, name: str) -> int | None:
        return wall.get(name)

    pins = {name: Pin(reader, sheet, name) for name in "abc"}
    expected = [
        ({}, {"a": None, "b": 2, "c": None}, "abc"),
        ({"a": 5}, {"a": 5, "b": 2, "c": None}, "a"),
        ({"c": 1}, {"a": 5, "b": 2, "c": None}, ""),
        ({"b": 1, "c": 7}, {"a": 5, "b": None, "c": 7}, "bc"),
    ]
    for put, values, touched in expected:
        sheet.put(**put)
        assert "".join(name for name in "abc" if pins[name].take_touched()) == touched
        assert {name: pins[name].value() for name in "abc"} == values
    sheet.put(bad=1)
    assert [pins[name].take_touched() for name in "abc"] == [True] * 3
    with pytest.raises(ValueError, match="bad"):
        pins["a"].value()
    sheet.graph.apply([sheet.numbers.remove("bad")])
    assert (pins["a"].value(), pins["c"].value()) == (5, 7)


def test_stage_that_depends_on_a_later_stage_is_an_error() -> None:
    """The error names both stages, because stages are computed in order."""
    sheet = Sheet(a=1)
    later: list[DerivedIndex[int, str, int]] = []

    def entries(name: str) -> Collection[int]:
        return tuple(later[0]) if later else ()

    DerivedIndex(sheet.graph, "early", sheet.numbers, entries)
    later.append(DerivedIndex(sheet.graph, "late", sheet.numbers, lambda _: (1,)))
    with pytest.raises(OrderError, match="early, stage 1, cannot depend on stage 2"):
        sheet.put(b=1)


def test_node_keeps_its_readers_in_order_whatever_their_number() -> None:
    """Up to FEW readers are in a tuple, more are in a dictionary, and each can be removed again."""
    node = Source(Family("numbers"), "a")
    readers = [
        Derivation(Function("reads", lambda _: None, (), single=True), number) for number in range(2 * FEW)
    ]
    for count, reader in enumerate(readers, 1):
        node.read_by(reader)
        assert list(node.readers) == readers[:count]
        assert isinstance(node.readers, tuple if count <= FEW else dict)
    for reader in readers[::2]:
        node.left_by(reader)
        node.left_by(reader)
    assert list(node.readers) == readers[1::2]
    for reader in readers[1 : -2 * FEW // 4 : 2]:
        node.left_by(reader)
    assert isinstance(node.readers, tuple), "few again: no room is kept for many"
    assert list(node.readers) == readers[-2 * FEW // 4 + 1 :: 2]


def test_index_entry_has_its_keys_once_and_in_order() -> None:
    """The order in which keys are added and removed does not matter."""
    sheet = Sheet(c=2, a=4, d=1, b=6)
    by_parity = Index(sheet.graph, "numbers by parity", sheet.numbers, lambda _, number: (number % 2,))
    assert by_parity._members == {0: ("a", "b", "c"), 1: ("d",)}
    assert tuple(sheet.numbers) == ("a", "b", "c", "d")
    sheet.put(bb=8)
    sheet.drop("a")
    sheet.drop("d")
    assert by_parity._members == {0: ("b", "bb", "c")}
    assert tuple(sheet.numbers) == ("b", "bb", "c")


def test_large_index_entry_stays_sorted_and_returns_one_tuple_until_it_changes() -> None:
    """Beyond COPIED keys an entry is a SortedKeys, so that a new key does not copy the others.

    A tuple that was read earlier does not change.
    """
    names = [f"n{number:03}" for number in range(4 * COPIED)]
    sheet = Sheet()
    by_parity = Index(sheet.graph, "numbers by parity", sheet.numbers, lambda _, number: (number % 2,))
    dice = random.Random(1)  # noqa: S311 - dice
    for name in dice.sample(names, len(names)):
        sheet.put(**{name: 2})
        assert isinstance(by_parity._members[0], tuple if len(sheet.numbers) <= COPIED else SortedKeys)
    assert by_parity[0] == tuple(sheet.numbers) == tuple(names)
    assert by_parity[0] is by_parity[0]
    before = by_parity[0]
    for name in dice.sample(names, len(names) - 1):
        sheet.drop(name)
        assert by_parity[0] == tuple(sheet.numbers) == tuple(sorted(sheet.numbers.values_unrecorded()))
    sheet.drop(next(iter(sheet.numbers)))
    assert (dict(by_parity), tuple(sheet.numbers)) == ({}, ())
    assert before == tuple(names)


def test_values_are_remembered_by_source_and_arguments() -> None:
    """A single tuple argument differs from several arguments, and each source has its own values."""
    asked: list[tuple[object, ...]] = []

    @derived
    def one(sheet: Sheet, key: object) -> int:
        asked.append((sheet, key))
        return len(asked)

    @derived
    def two(sheet: Sheet, key: object, other: object) -> int:
        asked.append((sheet, key, other))
        return len(asked)

    sheet, another = Sheet(), Sheet()
    pair = ("a", "b")
    result = [one(sheet, pair), one(sheet, "a"), two(sheet, *pair), two(sheet, pair, "b"), one(another, pair)]
    assert result == [1, 2, 3, 4, 5]
    assert asked == [(sheet, pair), (sheet, "a"), (sheet, "a", "b"), (sheet, pair, "b"), (another, pair)]
    assert [one(sheet, pair), two(sheet, *pair), one(another, pair)] == [1, 3, 5]
    assert str(one.node(sheet, pair)).endswith("one(('a', 'b'))")
    assert str(two.node(sheet, *pair)).endswith("two(a, b)")


def test_nodes_take_at_most_112_and_72_bytes() -> None:
    """A mesh has about a hundred nodes for each service, so common fields are in their family."""
    assert sys.getsizeof(Derivation(Function("f", lambda _: None, (), single=True), 1)) <= 112
    assert sys.getsizeof(Source(Family("numbers"), "a")) <= 72
