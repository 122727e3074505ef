"""Time slices for long computations on the event loop, so streams are served meanwhile."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

SLICE_SECONDS: Final = 0.003
"""Maximum seconds that a task holds the event loop at a time, unless a single step takes longer."""

T = TypeVar("T")


class Slices:
    """Time slice of one task on the event loop, shared by all computations that the task does in turn.

    Create it when the task has just resumed. `clock` returns seconds.
    """

    __slots__ = ("_began", "_clock")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()

    async def give_way(self) -> None:
        """Give the other tasks a turn if the slice is used up."""
        if self._clock() - self._began > SLICE_SECONDS:
            # One turn of the loop is enough: all ready streams run before this task resumes.
            await asyncio.sleep(0)
            self._began = self._clock()

    async def result(self, steps: Iterator[T | None]) -> T:
        """Run a computation that yields `None` between steps and its result last; give way between steps."""
        for step in steps:
            await self.give_way()
            if step is not None:
                return step
        raise AssertionError("a computation ended without a result")


async def in_slices(items: Iterator[T]) -> tuple[T, ...]:
    """Return all computed items, with turns for other tasks in between."""
    slices, result = Slices(), list[T]()
    for item in items:
        result.append(item)
        await slices.give_way()
    return tuple(result)
