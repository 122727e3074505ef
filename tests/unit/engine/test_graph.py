"""The engine by itself: what runs, what does not, and what goes wrong."""

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
    """Numbers by name, and what was computed, in order."""

    def __init__(self, **numbers: int) -> None:
        self.graph = Graph()
        self.numbers: Table[str, int] = Table(self.graph, "numbers")
        self.ran: list[str] = []
        self.put(**numbers)

    def put(self, **numbers: int) -> None:
        """Set numbers, as one change."""
        self.graph.apply([self.numbers.set(name, number) for name, number in numbers.items()])

    def drop(self, name: str) -> None:
        """Remove a number."""
        self.graph.apply([self.numbers.remove(name)])

    def took(self) -> list[str]:
        """Return what ran since the last time."""
        ran, self.ran = self.ran, []
        return ran


@derived
def parity(sheet: Sheet, name: str) -> int:
    """Return a number's last bit, -1 for none."""
    sheet.ran.append(f"parity {name}")
    return sheet.numbers.get(name, -1) % 2 if name in sheet.numbers else -1


@derived
def described(sheet: Sheet, name: str) -> str:
    """Say what a number is."""
    sheet.ran.append(f"described {name}")
    return {0: "even", 1: "odd", -1: "none"}[parity(sheet, name)]


@derived
def names(sheet: Sheet) -> tuple[str, ...]:
    """Return the names."""
    sheet.ran.append("names")
    return tuple(sheet.numbers)


@derived
def half(sheet: Sheet, name: str) -> int:
    """Halve an even number."""
    sheet.ran.append(f"half {name}")
    if sheet.numbers[name] % 2:
        raise ValueError(f"{name} is odd")
    return sheet.numbers[name] // 2


@derived
def quarter(sheet: Sheet, name: str) -> int:
    """Halve twice."""
    sheet.ran.append(f"quarter {name}")
    return half(sheet, name) // 2


def test_a_value_is_computed_once() -> None:
    """And again only when something changes that it has read."""
    sheet = Sheet(a=1, b=2)
    assert [described(sheet, "a"), described(sheet, "a")] == ["odd", "odd"]
    assert sheet.took() == ["described a", "parity a"]
    Pin(described, sheet, "a")
    sheet.put(b=3, c=4)
    assert described(sheet, "a") == "odd"
    assert sheet.took() == []


def test_an_equal_value_stops_the_change() -> None:
    """The parity is computed again and is the same: what read it does not run, and is counted as reused."""
    sheet = Sheet(a=1)
    Pin(described, sheet, "a").value()
    sheet.took()
    sheet.put(a=3)
    before = sheet.graph.computed, sheet.graph.stopped, sheet.graph.reused
    assert described(sheet, "a") == "odd"
    assert sheet.took() == ["parity a"]
    after = sheet.graph.computed, sheet.graph.stopped, sheet.graph.reused
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 1, 1]


def test_setting_what_is_there_is_no_change() -> None:
    """Nothing is even in doubt."""
    sheet = Sheet(a=1)
    pin = Pin(described, sheet, "a")
    pin.value()
    assert pin.take_touched()
    sheet.put(a=1)
    assert not pin.take_touched()


def test_an_absent_key_was_read_too() -> None:
    """What was looked for in vain is found when it comes, and missed when it goes."""
    sheet = Sheet()
    pin = Pin(described, sheet, "a")
    assert pin.value() == "none"
    sheet.put(a=2)
    assert pin.value() == "even"
    sheet.drop("a")
    assert pin.value() == "none"


def test_iterating_reads_the_set_of_keys() -> None:
    """Another value under the same key is none of its business."""
    sheet = Sheet(b=1)
    pin = Pin(names, sheet)
    assert pin.value() == ("b",)
    sheet.put(b=2)
    sheet.took()
    assert pin.value() == ("b",)
    assert sheet.took() == []
    sheet.put(a=1)
    assert pin.value() == ("a", "b")


def test_an_error_is_a_value() -> None:
    """It is remembered, raised to every reader, and gone when its inputs mend."""
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


def test_an_error_does_not_hold_on_to_what_was_computed() -> None:
    """No traceback stays behind: it would keep every local variable alive."""
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
    """Need the second, unless there is an a."""
    return 1 if "a" in sheet.numbers else second(sheet)


@derived
def second(sheet: Sheet) -> int:
    """Need the third; think oneself clever about errors."""
    try:
        return third(sheet)
    except CycleError:
        return 0


@derived
def third(sheet: Sheet) -> int:
    """Need the first."""
    return first(sheet)


@pytest.mark.parametrize("begin", [first, second, third])
def test_a_cycle_names_its_members_whoever_was_asked(begin: object) -> None:
    """Each of them has the same error, also who would have caught it; it ends with the cycle."""
    sheet = Sheet()
    pins = [Pin(function, sheet) for function in (first, second, third)]
    order = sorted(pins, key=lambda pin: pin.node.family.function is not getattr(begin, "__wrapped__", None))
    said = set()
    for pin in order:
        with pytest.raises(CycleError) as caught:
            pin.value()
        said.add(str(caught.value))
    (one,) = said
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


def test_pins_are_told_when_touched() -> None:
    """Those that a change may concern, and no others; a new one at once."""
    sheet = Sheet(a=1, b=1)
    of_a, of_b = Pin(described, sheet, "a"), Pin(described, sheet, "b")
    assert [of_a.take_touched(), of_b.take_touched()] == [True, True]
    assert [of_a.value(), of_b.value()] == ["odd", "odd"]
    sheet.put(a=2)
    assert [of_a.take_touched(), of_b.take_touched()] == [True, False]
    assert [of_a.take_touched(), of_b.take_touched()] == [False, False]


def test_what_nobody_wants_is_forgotten() -> None:
    """With the next change; and so is what only that had read."""
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


def test_much_is_forgotten_in_parts() -> None:
    """So many values at a time, until nothing is left that nobody wants; what is wanted again stays."""
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


def test_nothing_is_forgotten_under_a_computation() -> None:
    """What it has read is known only in the end."""
    sheet = Sheet(a=1)

    @derived
    def tidying(sheet: Sheet) -> None:
        sheet.graph.collect()

    with pytest.raises(BusyError, match=r"while .*tidying"):
        tidying(sheet)


def test_a_pin_knows_its_sources() -> None:
    """The inputs that its value came from, through whatever lies between, absent ones too."""
    sheet = Sheet(a=1)
    pin = Pin(described, sheet, "z")
    pin.value()
    assert [(each.origin, each.key) for each in pin.sources()] == [("numbers", "z")]


def test_inputs_do_not_change_under_a_computation() -> None:
    """A function that changes inputs gets an error."""
    sheet = Sheet(a=1)

    @derived
    def meddling(sheet: Sheet) -> None:
        sheet.put(a=2)

    with pytest.raises(BusyError, match=r"while .*meddling"):
        meddling(sheet)
    assert sheet.numbers["a"] == 1


def test_an_iterator_is_no_value() -> None:
    """It could be read only once."""

    @derived
    def counting(sheet: Sheet) -> Iterator[int]:
        return iter([1])

    with pytest.raises(TypeError, match=r"counting.* returned an iterator"):
        counting(Sheet())


def test_named_arguments_are_refused() -> None:
    """One value would be remembered twice."""
    with pytest.raises(TypeError, match="positional"):
        parity(Sheet(), name="a")


def test_an_index_tells_only_who_read_the_entry() -> None:
    """Entries come, change and go with the inputs; each is read by itself."""
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


def test_a_watched_index_says_which_entries_changed() -> None:
    """All of them first; then those whose keys came or went."""
    sheet = Sheet(a=1, b=2)
    index: Index[int, str, int] = Index(sheet.graph, "bits", sheet.numbers, lambda _, value: (value % 2,))
    index.watch()
    assert sorted(index.take_changed()) == [0, 1]
    sheet.put(a=3)
    assert index.take_changed() == ()
    sheet.put(a=4)
    assert sorted(index.take_changed()) == [0, 1]


def test_a_derived_index_follows_what_its_function_reads() -> None:
    """And who raised is in no entry, but among the failures, until it mends."""
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


def test_a_firewall_ends_doubt() -> None:
    """Who reads it is not even touched while its value stays."""
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


def test_each_value_may_stand_behind_a_firewall_of_its_own() -> None:
    """Who reads one is not touched while that one stays; it goes with its last reader."""
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


def test_an_error_behind_a_firewall_is_its_readers() -> None:
    """Raised to each of them, again when it is asked again, and mended with what it came from."""
    sheet = Sheet(a=1, b=2)
    walls = Firewalls(sheet.graph, half, sheet)
    for _ in range(2):
        with pytest.raises(ValueError, match="a is odd"):
            walls.value("a")
    assert walls.value("b") == 1
    sheet.put(a=4)
    assert walls.value("a") == 2


def test_of_a_mapping_behind_a_firewall_one_key_concerns_its_readers() -> None:
    """Whatever becomes of the others; an error concerns all of them."""
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


def test_a_stage_cannot_depend_on_a_later_one() -> None:
    """Through whatever lies between; the error names both."""
    sheet = Sheet(a=1)
    later: list[DerivedIndex[int, str, int]] = []

    def entries(name: str) -> Collection[int]:
        return tuple(later[0]) if later else ()

    DerivedIndex(sheet.graph, "early", sheet.numbers, entries)
    later.append(DerivedIndex(sheet.graph, "late", sheet.numbers, lambda _: (1,)))
    with pytest.raises(OrderError, match="early, stage 1, cannot depend on stage 2"):
        sheet.put(b=1)


def test_readers_are_told_apart_however_many_they_are() -> None:
    """Few stand in a tuple, many in a dictionary, in the order in which they came; each can go again."""
    node = Source(Family("numbers"), "a")
    readers = [
        Derivation(Function("reads", lambda _: None, (), single=True), each) for each in range(2 * FEW)
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


def test_an_entry_holds_its_keys_once_and_in_order() -> None:
    """Whatever the order in which they came and went; an entry of one key is no more than that."""
    sheet = Sheet(c=2, a=4, d=1, b=6)
    by_parity = Index(sheet.graph, "numbers by parity", sheet.numbers, lambda _, number: (number % 2,))
    assert by_parity._members == {0: ("a", "b", "c"), 1: ("d",)}
    assert tuple(sheet.numbers) == ("a", "b", "c", "d")
    sheet.put(bb=8)
    sheet.drop("a")
    sheet.drop("d")
    assert by_parity._members == {0: ("b", "bb", "c")}
    assert tuple(sheet.numbers) == ("b", "bb", "c")


def test_many_keys_are_in_order_and_none_of_them_is_copied_for_another() -> None:
    """Beyond so many they are added to; who reads them has the same tuple until one is other."""
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
        assert by_parity[0] == tuple(sheet.numbers) == tuple(sorted(sheet.numbers.held()))
    sheet.drop(next(iter(sheet.numbers)))
    assert (dict(by_parity), tuple(sheet.numbers)) == ({}, ())
    assert before == tuple(names)


def test_a_value_is_remembered_by_what_it_was_given() -> None:
    """One argument stands for itself, a tuple among them; several are told apart, and so are sources."""
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
    found = [one(sheet, pair), one(sheet, "a"), two(sheet, *pair), two(sheet, pair, "b"), one(another, pair)]
    assert found == [1, 2, 3, 4, 5]
    assert asked == [(sheet, pair), (sheet, "a"), (sheet, "a", "b"), (sheet, pair, "b"), (another, pair)]
    assert [one(sheet, pair), two(sheet, *pair), one(another, pair)] == [1, 3, 5]
    assert str(one.node(sheet, pair)).endswith("one(('a', 'b'))")
    assert str(two.node(sheet, *pair)).endswith("two(a, b)")


def test_what_a_node_takes() -> None:
    """What all of a sort share is in their family: there are a hundred nodes for each service of a mesh."""
    assert sys.getsizeof(Derivation(Function("f", lambda _: None, (), single=True), 1)) <= 112
    assert sys.getsizeof(Source(Family("numbers"), "a")) <= 72
