"""Slices: a long computation gives way again and again, however it is put together."""

import asyncio
from collections.abc import Iterator

import pytest

from meshwright.delivery.timing.time_slices import SLICE_SECONDS, Slices

STEP = SLICE_SECONDS * 0.4
"""Three steps are more than a slice."""


class Steps:
    """Steps that each take STEP of a clock, and how many were made in each turn of the loop."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = [0]

    def steps(self, count: int) -> Iterator[str | None]:
        """Take steps; the result comes with the last."""
        for left in reversed(range(count)):
            self.now += STEP
            self.turns[-1] += 1
            yield None if left else "done"

    async def others(self) -> None:
        """Run beside them, once in each turn of the loop."""
        while True:
            self.turns.append(0)
            await asyncio.sleep(0)


async def test_a_computation_gives_way_when_its_slice_is_over() -> None:
    """No turn of the loop has more than three steps, and the result comes in the end."""
    steps = Steps()
    slices, others = Slices(lambda: steps.now), asyncio.create_task(steps.others())
    assert await slices.result(steps.steps(10)) == "done"
    others.cancel()
    assert [each for each in steps.turns if each] == [3, 3, 3, 1]


async def test_what_is_done_one_by_one_shares_a_slice() -> None:
    """Five computations of two steps each hold the loop no longer than one of ten."""
    steps = Steps()
    slices, others = Slices(lambda: steps.now), asyncio.create_task(steps.others())
    for _ in range(5):
        await slices.result(steps.steps(2))
    others.cancel()
    assert [each for each in steps.turns if each] == [3, 3, 3, 1]


async def test_a_computation_without_a_result_is_an_error() -> None:
    """It would be waited for in vain."""
    with pytest.raises(AssertionError, match="without a result"):
        await Slices().result(iter((None, None)))
