"""The collector: young cycles are found, what stays is frozen, and looked through again but rarely."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from controller import memory


class Cycle:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Let no collection come by itself, and leave nothing frozen."""
    gc.disable()
    gc.collect()
    yield
    gc.unfreeze()
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


def test_a_younger_collection_freezes_nothing() -> None:
    """What is young may be garbage soon."""
    with memory.tended():
        gc.collect(1)
        assert gc.get_freeze_count() == 0


def test_a_frozen_cycle_that_came_loose_is_found_when_all_is_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That is when twice as much is frozen as was alive, not before; then this is what is alive."""
    monkeypatch.setattr(memory, "LEAST", 0)
    with memory.tended():
        held = Cycle()
        kept = weakref.ref(held)
        gc.collect()
        del held
        frozen = gc.get_freeze_count()
        assert memory.thorough(frozen) == frozen
        assert kept() is not None
        alive = memory.thorough(frozen // 3)
        assert kept() is None
        assert 0 < alive < frozen
