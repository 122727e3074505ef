"""The collector: young cycles are found, what stays is frozen, and looked through again but rarely."""

import gc
import itertools
import weakref
from collections.abc import Iterator

import pytest

from meshwright.controller.process import memory


class Cycle:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True, scope="module")
def _as_before() -> Iterator[None]:
    """Freeze in the end what stays, as it was before: else all tests to come look through it."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _alone(_as_before: None) -> Iterator[None]:
    """Let no collection come by itself, nor look through what all other tests have left."""
    gc.disable()
    gc.freeze()
    yield
    gc.enable()


def test_the_collector_is_as_it_was_in_the_end() -> None:
    """Thresholds and callbacks are there for the block alone, and nothing stays frozen."""
    before = gc.get_threshold(), tuple(gc.callbacks)
    with memory.tended():
        assert gc.get_threshold() == memory.THRESHOLDS
        gc.collect()
        assert gc.get_freeze_count()
    assert (gc.get_threshold(), tuple(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0


def test_what_survives_a_full_collection_is_frozen_and_garbage_is_not() -> None:
    """A loose cycle is freed by the collection; one that is held is frozen by it, and missed afterwards."""
    with memory.tended():
        loose, held = Cycle(), Cycle()
        freed, kept = weakref.ref(loose), weakref.ref(held)
        del loose
        gc.collect()
        assert freed() is None
        del held
        gc.collect()
        assert kept() is not None


def test_a_collection_of_the_youngest_freezes_nothing() -> None:
    """What is young may be garbage soon."""
    with memory.tended():
        before = gc.get_freeze_count()
        gc.collect(0)
        assert gc.get_freeze_count() <= before


class Looks:
    """The collections there were: their generation, and how many objects each looked through.

    It is a clock as well, by which an object takes a microsecond.
    """

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []
        gc.callbacks.insert(0, self._note)

    def end(self) -> None:
        """Look on no more."""
        gc.callbacks.remove(self._note)

    def seconds(self) -> float:
        """Return the time of this clock."""
        return sum(count for _, count in self.found) / 1e6

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations = range(info["generation"] + 1)
            self.found.append((info["generation"], sum(len(gc.get_objects(each)) for each in generations)))


def _always(looks: Looks) -> memory.YoungScan:
    """Return what looks each time, as in a process that computes all the time."""
    return memory.YoungScan(looks.seconds, itertools.count().__next__)


@pytest.fixture
def looks() -> Iterator[Looks]:
    """Return the collections of a test; what was there before it is frozen."""
    gc.freeze()
    found = Looks()
    yield found
    found.end()


def test_no_collection_has_more_than_was_made_since_the_last_looks(looks: Looks) -> None:
    """New values in the place of old ones, so that the collector itself sees no reason to run."""
    made = 1_000
    young, held = _always(looks), [[each] for each in range(50 * made)]
    gc.freeze()
    with memory.tended():
        for begin in range(0, len(held), made):
            held[begin : begin + made] = [[each] for each in range(made)]
            young.look()
    most = memory.STAYED_SECONDS * 1e6 + 3 * made
    assert [generation for generation, _ in looks.found][:12] == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0]
    assert max(count for _, count in looks.found) < most


def test_while_each_look_finds_many_none_is_looked_through_twice(looks: Looks) -> None:
    """A mesh is made anew: what the first look finds waits for the second; then each finds its own."""
    made = round(2 * memory.STAYED_SECONDS * 1e6)
    young, held, rounds = _always(looks), list[list[int]](), 8
    with memory.tended():
        for _ in range(rounds):
            held += [[each] for each in range(made)]
            young.look()
    assert [generation for generation, _ in looks.found] == [0, *[1] * (rounds - 1)]
    assert sum(count for _, count in looks.found) < (rounds + 2) * made


def test_what_hardly_computes_is_not_looked_through(looks: Looks) -> None:
    """An idle server is asked twenty times a second: it collects after each so many milliseconds of CPU."""
    used = [0.0]
    young = memory.YoungScan(looks.seconds, lambda: used[0])
    with memory.tended():
        for _ in range(100):
            used[0] += memory.USED_SECONDS / 10
            young.look()
    assert 9 <= len(looks.found) <= 10


def test_few_objects_that_stay_are_not_frozen_soon(looks: Looks) -> None:
    """An idle server's looks are many and find little: what they leave may be garbage yet."""
    young, held = _always(looks), []
    with memory.tended():
        frozen = gc.get_freeze_count()
        for each in range(100):
            held.append(Cycle())
            young.look()
            assert looks.found[-1][0] == 0, each
        # Fewer, where an object ended that was frozen before this test.
        assert gc.get_freeze_count() <= frozen


def test_the_collectors_own_count_lets_the_young_become_many() -> None:
    """As many go as come, so that it sees no reason to run: what the test above guards against."""
    with memory.tended():
        held = [[each] for each in range(2 * memory.THRESHOLDS[0])]
        gc.freeze()
        gc.enable()
        for index in range(len(held)):
            held[index] = [index]
        assert len(gc.get_objects(0)) >= len(held)


def test_a_frozen_cycle_that_came_loose_is_found_when_all_is_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That is when twice as much is frozen as there should be, not before; then this is what is alive."""
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
        assert look.held == 7


def test_what_the_server_has_come_to_remember_is_no_reason_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh that has doubled is twice as many objects; that it has shrunk says nothing."""
    monkeypatch.setattr(memory, "LEAST", 0)
    with memory.tended():
        gc.collect()
        frozen = gc.get_freeze_count()
        last = memory.MemoryScan(frozen // 3, memory.estimated(100, 1))
        assert memory.thorough(last, last.held + frozen, connected=False) is last
        assert memory.thorough(last, 0, connected=False) is not last


def test_nobody_who_is_connected_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until nobody is, or until it is so much that memory matters more."""
    monkeypatch.setattr(memory, "LEAST", 0)
    with memory.tended():
        gc.collect()
        frozen = gc.get_freeze_count()
        twice, often = memory.MemoryScan(frozen // 3, 0), memory.MemoryScan(frozen // 5, 0)
        assert memory.thorough(twice, 0, connected=True) is twice
        assert memory.thorough(often, 0, connected=True) is not often
