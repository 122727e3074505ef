"""Problems between objects: looked for after waves, not in them, so that nobody waits for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from catalog.lint.problems import Looked
from meshwright.delivery.model import Model
from meshwright.delivery.timing.time_slices import Slices

AFTER_SECONDS: Final = 0.1
"""How long after a wave: what proxies answer goes first, and waves of a burst are looked at together."""


async def soon() -> None:
    """Return when what was just changed is to be looked at."""
    await asyncio.sleep(AFTER_SECONDS)


class IncrementalLint:
    """Looks again at what changes concern: in the wave itself, while `run` is at it soon after.

    At once if somebody asks what is wrong (`finish`).

    `model` returns what is followed, None where nothing is; `found` is told what is wrong where it looked.
    `rest` returns when what has just been changed is to be looked at.
    """

    def __init__(
        self,
        model: Callable[[], Model | None],
        found: Callable[[Sequence[Looked]], None],
        rest: Callable[[], Awaitable[object]] = soon,
    ) -> None:
        self._model = model
        self._found = found
        self._rest = rest
        self._later = False
        self._due = asyncio.Event()
        self._turn = asyncio.Lock()  # one at a time looks, and the others have what it finds

    def postpone(self) -> None:
        """Have `run` look, which is to come, from the first wave on: nobody waits for it to be served."""
        self._later = True

    async def after_wave(self) -> None:
        """Look now, or have `run` do it."""
        if self._later:
            self._due.set()
        else:
            await self._look()

    async def run(self) -> None:
        """Look after waves until cancelled; begin with everything."""
        self._later = True
        try:
            if (model := self._model()) is not None:
                model.linter.renew()
                self._due.set()
            while True:
                await self._due.wait()
                await self._rest()
                await self._finish()
        finally:
            self._later = False

    async def finish(self) -> None:
        """Return when all that is followed has been looked at: for whoever asks what is wrong.

        They may go meanwhile: what was being looked at is told all the same.
        """
        await asyncio.shield(asyncio.create_task(self._finish(), name="problems asked for"))

    async def _finish(self) -> None:
        async with self._turn:
            if self._due.is_set():
                self._due.clear()
                await self._look()

    async def _look(self) -> None:
        """What comes meanwhile is looked at in the next turn; of a model given up since nothing is told."""
        if (model := self._model()) is not None:
            found = await Slices().result(model.lint())
            if model is self._model():
                self._found(found)
