"""Long computations on the event loop: in slices, with a turn of the loop for everybody else after each."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

SLICE_SECONDS: Final = 0.003
"""How long a task holds the event loop at a time, but for a single step that takes longer."""

T = TypeVar("T")


class Slices:
    """The time of one task on the event loop: how long it has held it, over all that it does one by one.

    To be made when the task has just been let run; `clock` is in seconds.
    """

    __slots__ = ("_began", "_clock")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()

    async def give_way(self) -> None:
        """Let everybody else run if the slice is over."""
        if self._clock() - self._began > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._clock()

    async def result(self, steps: Iterator[T | None]) -> T:
        """Run a computation that yields None now and then and its result last, giving way as it goes."""
        for step in steps:
            await self.give_way()
            if step is not None:
                return step
        raise AssertionError("a computation ended without a result")


async def in_slices(items: Iterator[T]) -> tuple[T, ...]:
    """Return what is computed one by one, with a turn of the loop for everybody else now and then."""
    slices, found = Slices(), list[T]()
    for each in items:
        found.append(each)
        await slices.give_way()
    return tuple(found)
