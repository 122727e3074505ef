"""Tests of time slices: a long computation yields to the event loop again and again."""

import asyncio
from collections.abc import Iterator

import pytest

from meshwright.delivery.timing.time_slices import SLICE_SECONDS, Slices

STEP = SLICE_SECONDS * 0.4
"""Three steps are more than a slice."""


class Steps:
    """Steps that each take STEP of a clock, and their number in each turn of the event loop."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = [0]

    def steps(self, count: int) -> Iterator[str | None]:
        """Take steps; the last one yields the result."""
        for left in reversed(range(count)):
            self.now += STEP
            self.turns[-1] += 1
            yield None if left else "done"

    async def others(self) -> None:
        """Run once in each turn of the event loop."""
        while True:
            self.turns.append(0)
            await asyncio.sleep(0)


async def test_computation_yields_at_the_end_of_its_slice() -> None:
    """No turn of the event loop has more than three steps, and the result is returned at the end."""
    steps = Steps()
    slices, others = Slices(lambda: steps.now), asyncio.create_task(steps.others())
    assert await slices.result(steps.steps(10)) == "done"
    others.cancel()
    assert [turn for turn in steps.turns if turn] == [3, 3, 3, 1]


async def test_successive_computations_share_a_slice() -> None:
    """Five computations of two steps block the event loop no longer than one of ten."""
    steps = Steps()
    slices, others = Slices(lambda: steps.now), asyncio.create_task(steps.others())
    for _ in range(5):
        await slices.result(steps.steps(2))
    others.cancel()
    assert [turn for turn in steps.turns if turn] == [3, 3, 3, 1]


async def test_computation_without_a_result_is_an_error() -> None:
    """The caller waits for the result, so the steps must end with one."""
    with pytest.raises(AssertionError, match="without a result"):
        await Slices().result(iter((None, None)))
