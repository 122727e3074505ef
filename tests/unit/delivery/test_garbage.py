"""What a control plane lets go of is freed at once: nothing of it waits for the garbage collector."""

import gc
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.meshes.random_meshes import changed, random_mesh
from tests.unit.delivery.histories import Replica


@pytest.fixture
def unreachable() -> Iterator[list[object]]:
    """Have the collector keep what it finds, and collect nothing by itself."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("seed", range(8))
def test_waves_leave_no_cycles(unreachable: list[object], seed: int) -> None:
    """Whatever changes, comes, goes, fails and is rejected; so the collector may look seldom."""
    dice = random.Random(seed)  # noqa: S311 - dice
    replica = Replica(random_mesh(dice))
    for _ in range(25):
        replica.wave()
        for _ in range(dice.randrange(8)):
            replica.answer(dice)
        for _ in range(dice.randint(1, 3)):
            changed(dice, replica.mesh)
    gc.collect()
    assert Counter(type(each).__qualname__ for each in unreachable) == {}
