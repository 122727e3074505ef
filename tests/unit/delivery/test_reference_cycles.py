"""Test of memory: a control plane's unused objects are freed without the garbage collector."""

import gc
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.meshes.random_meshes import changed, random_mesh
from tests.tools.hypothesis_profiles import examples
from tests.unit.delivery.histories import Replica


@pytest.fixture
def unreachable() -> Iterator[list[object]]:
    """Let the collector keep what it finds, and disable automatic collections."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.fuzzed
@pytest.mark.parametrize("seed", range(examples(3, fresh=8)))
def test_waves_leave_no_reference_cycles(unreachable: list[object], seed: int) -> None:
    """Random changes, acknowledgements and rejections leave no cycles, so the collector may run seldom."""
    dice = random.Random(seed)  # noqa: S311 - dice
    replica = Replica(random_mesh(dice))
    for _ in range(25):
        replica.wave()
        for _ in range(dice.randrange(8)):
            replica.answer(dice)
        for _ in range(dice.randint(1, 3)):
            changed(dice, replica.mesh)
    gc.collect()
    assert Counter(type(item).__qualname__ for item in unreachable) == {}
