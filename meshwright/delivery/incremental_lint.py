"""Search for problems between mesh objects. Runs after a wave and not within, so publishing never waits."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from catalog.lint.problems import Looked
from meshwright.delivery.model import Model
from meshwright.delivery.timing.time_slices import Slices

AFTER_SECONDS: Final = 0.1
"""Seconds from a wave to the search.

Within this time the answers of proxies go first, and the waves of a burst share one search.
"""

TIME_SECONDS: Final = 60
"""Seconds between two looks at the time, because certificates expire without a change of an object."""


async def soon() -> None:
    """Return after AFTER_SECONDS."""
    await asyncio.sleep(AFTER_SECONDS)


async def later() -> None:
    """Return after TIME_SECONDS."""
    await asyncio.sleep(TIME_SECONDS)


class IncrementalLint:
    """Repeated search for problems where objects have changed.

    While `run` is active the search follows soon after a wave, or at once for a caller of `finish`. Otherwise
    the wave itself searches. `model` returns the current model or `None`; `result` receives the problems of
    the objects examined; `rest` returns when the search should begin. Each search is made for the time of
    `clock`; `again` returns when the time should be looked at without a wave. Use on the event loop.
    """

    def __init__(
        self,
        model: Callable[[], Model | None],
        result: Callable[[Sequence[Looked]], None],
        rest: Callable[[], Awaitable[object]] = soon,
        *,
        clock: Callable[[], datetime],
        again: Callable[[], Awaitable[object]] = later,
    ) -> None:
        self._clock = clock
        self._again = again
        self._model = model
        self._result = result
        self._rest = rest
        self._later = False
        self._due = asyncio.Event()
        self._turn = asyncio.Lock()  # one search at a time; other callers wait for its results

    def postpone(self) -> None:
        """Leave the search to `run`, which the caller will start, from the first wave on.

        Without this the first wave would search the whole mesh before any proxy is served.
        """
        self._later = True

    async def after_wave(self) -> None:
        """Search for problems now, or wake the task `run` if there is one."""
        if self._later:
            self._due.set()
        else:
            await self._search()

    async def run(self) -> None:
        """Search for problems after each wave until cancelled; the first search covers the whole mesh."""
        self._later = True
        following = asyncio.create_task(self._follow_time(), name="time of problems")
        try:
            if (model := self._model()) is not None:
                # The problems of an earlier run are unknown here, so everything is examined once.
                model.linter.renew()
                self._due.set()
            while True:
                await self._due.wait()
                await self._rest()
                await self._finish()
        finally:
            following.cancel()
            self._later = False

    async def finish(self) -> None:
        """Return when all changes have been examined; for callers that need the current problems.

        If the caller is cancelled, the search still finishes and reports its results.
        """
        await asyncio.shield(asyncio.create_task(self._finish(), name="requested problems"))

    async def _follow_time(self) -> None:
        while True:
            await self._again()
            self._due.set()

    async def _finish(self) -> None:
        async with self._turn:
            if self._due.is_set():
                self._due.clear()
                await self._search()

    async def _search(self) -> None:
        """Examine all changed objects for problems; later changes wait for the next search."""
        if (model := self._model()) is not None:
            result = await Slices().result(model.lint(self._clock()))
            # A wave that failed meanwhile has dropped this model, so the results may be wrong.
            if model is self._model():
                self._result(result)
