"""Tests of the garbage collector's use: young cycles are freed, old objects frozen and rarely scanned."""

import gc
import itertools
import weakref
from collections.abc import Iterator

import pytest

from meshwright.controller.process import memory


class Cycle:
    """An object that only the garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True, scope="module")
def _as_before() -> Iterator[None]:
    """Freeze all objects after a test, as before it, so that later tests need not scan them."""
    yield
    gc.freeze()


@pytest.fixture(autouse=True)
def _alone(_as_before: None) -> Iterator[None]:
    """Disable automatic collections and freeze the objects of earlier tests."""
    gc.disable()
    gc.freeze()
    yield
    gc.enable()


def test_collector_settings_are_restored_at_the_end() -> None:
    """Thresholds and callbacks apply within the block only, and no object stays frozen."""
    before = gc.get_threshold(), tuple(gc.callbacks)
    with memory.tended():
        assert gc.get_threshold() == memory.THRESHOLDS
        gc.collect()
        assert gc.get_freeze_count()
    assert (gc.get_threshold(), tuple(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0


def test_objects_that_survive_a_full_collection_are_frozen() -> None:
    """A loose cycle is freed by the collection.

    A referenced one is frozen, and is not freed by later collections.
    """
    with memory.tended():
        loose, held = Cycle(), Cycle()
        freed, kept = weakref.ref(loose), weakref.ref(held)
        del loose
        gc.collect()
        assert freed() is None
        del held
        gc.collect()
        assert kept() is not None


def test_collection_of_the_youngest_generation_freezes_no_object() -> None:
    """Young objects are not frozen, because they may soon be garbage."""
    with memory.tended():
        before = gc.get_freeze_count()
        gc.collect(0)
        assert gc.get_freeze_count() <= before


class Collections:
    """The collections of a test, with their generation and number of scanned objects.

    The record is also a clock, for which an object takes a microsecond.
    """

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []
        gc.callbacks.insert(0, self._note)

    def end(self) -> None:
        """Stop recording."""
        gc.callbacks.remove(self._note)

    def seconds(self) -> float:
        """Return the time of this clock in seconds."""
        return sum(count for _, count in self.found) / 1e6

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations = range(info["generation"] + 1)
            self.found.append(
                (info["generation"], sum(len(gc.get_objects(generation)) for generation in generations))
            )


def _always(looks: Collections) -> memory.YoungScan:
    """Return a scan that runs each time, as in a process that always computes."""
    return memory.YoungScan(looks.seconds, itertools.count().__next__)


@pytest.fixture
def looks() -> Iterator[Collections]:
    """Yield the collections of a test; earlier objects are frozen."""
    gc.freeze()
    result = Collections()
    yield result
    result.end()


def test_each_collection_scans_only_objects_made_since_the_last_ones(looks: Collections) -> None:
    """New values replace old ones, so that the collector itself sees no reason to run."""
    made = 1_000
    young, held = _always(looks), [[number] for number in range(50 * made)]
    gc.freeze()
    with memory.tended():
        for begin in range(0, len(held), made):
            held[begin : begin + made] = [[number] for number in range(made)]
            young.look()
    most = memory.STAYED_SECONDS * 1e6 + 3 * made
    assert [generation for generation, _ in looks.found][:12] == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0]
    assert max(count for _, count in looks.found) < most


def test_surviving_objects_are_not_scanned_twice_while_each_scan_finds_many(looks: Collections) -> None:
    """While the mesh is rebuilt, the first scan's objects wait for the second scan.

    Then each scan has its own.
    """
    made = round(2 * memory.STAYED_SECONDS * 1e6)
    young, held, rounds = _always(looks), list[list[int]](), 8
    with memory.tended():
        for _ in range(rounds):
            held += [[number] for number in range(made)]
            young.look()
    assert [generation for generation, _ in looks.found] == [0, *[1] * (rounds - 1)]
    assert sum(count for _, count in looks.found) < (rounds + 2) * made


def test_idle_process_is_scanned_rarely(looks: Collections) -> None:
    """A scan needs a certain CPU time since the last one. An idle server is asked 20 times per second."""
    used = [0.0]
    young = memory.YoungScan(looks.seconds, lambda: used[0])
    with memory.tended():
        for _ in range(100):
            used[0] += memory.USED_SECONDS / 10
            young.look()
    assert 9 <= len(looks.found) <= 10


def test_few_surviving_objects_are_not_frozen_soon(looks: Collections) -> None:
    """An idle server's scans find few objects, which may still become garbage."""
    young, held = _always(looks), []
    with memory.tended():
        frozen = gc.get_freeze_count()
        for number in range(100):
            held.append(Cycle())
            young.look()
            assert looks.found[-1][0] == 0, number
        # Fewer if an object that was frozen before this test has been freed.
        assert gc.get_freeze_count() <= frozen


def test_collector_alone_lets_young_objects_accumulate() -> None:
    """As many objects are freed as are made, so that the collector sees no reason to run.

    This is the negative control of the test with replaced values.
    """
    with memory.tended():
        held = [[number] for number in range(2 * memory.THRESHOLDS[0])]
        gc.freeze()
        gc.enable()
        for index in range(len(held)):
            held[index] = [index]
        assert len(gc.get_objects(0)) >= len(held)


def test_full_scan_at_twice_the_expected_objects_frees_frozen_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full scan runs when twice as many objects are frozen as expected, and then counts the living ones."""
    monkeypatch.setattr(memory, "LEAST", 0)
    with memory.tended():
        held = [Cycle() for _ in range(100)]
        kept = weakref.ref(held[0])
        gc.collect()
        del held
        frozen = gc.get_freeze_count()
        enough = memory.MemoryScan(frozen, 0)
        assert memory.thorough(enough, 0, connected=False) is enough
        assert kept() is not None
        look = memory.thorough(memory.MemoryScan(frozen // 3, 5), 7, connected=False)
        assert kept() is None
        assert 0 < look.alive < frozen
        assert look.estimate == 7


def test_growth_of_the_mesh_causes_no_full_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A doubled mesh explains twice as many objects. A mesh that has shrunk explains none."""
    monkeypatch.setattr(memory, "LEAST", 0)
    with memory.tended():
        gc.collect()
        frozen = gc.get_freeze_count()
        last = memory.MemoryScan(frozen // 3, memory.estimated(100, 1))
        assert memory.thorough(last, last.estimate + frozen, connected=False) is last
        assert memory.thorough(last, 0, connected=False) is not last


def test_full_scan_waits_while_proxies_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan waits until no proxy is connected.

    With too many objects it runs in any case, because memory matters more.
    """
    monkeypatch.setattr(memory, "LEAST", 0)
    with memory.tended():
        gc.collect()
        frozen = gc.get_freeze_count()
        twice, often = memory.MemoryScan(frozen // 3, 0), memory.MemoryScan(frozen // 5, 0)
        assert memory.thorough(twice, 0, connected=True) is twice
        assert memory.thorough(often, 0, connected=True) is not often
