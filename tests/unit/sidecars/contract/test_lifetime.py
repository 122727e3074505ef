"""Tests of the end of a driver: with time to drain, or immediately."""

import asyncio
from collections.abc import Coroutine

import pytest

from meshwright.sidecars.contract.lifetime import Lifetime

DRAIN = 7.0


class Control:
    """A Lifetime with a server that records its closing.

    With `slow`, draining lasts until it is cancelled.
    """

    def __init__(self, *, slow: bool = False) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.lifetime = Lifetime(DRAIN, self._spawn)
        self.closed: list[float] = []
        self.draining = asyncio.Event()
        self._slow = slow
        self.lifetime.spawn("server", self.lifetime.until_over(self._close))

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work, name=name))
        return self.tasks[-1]

    async def _close(self, grace: float) -> None:
        self.closed.append(grace)
        self.draining.set()
        if self._slow and grace:
            await asyncio.Event().wait()


def test_spread_lasts_until_a_cancellation() -> None:
    """A driver spreads the ends of its streams at an orderly stop, and not any more once cancelled."""
    lifetime = Lifetime(DRAIN, lambda _, work: work.close(), 20.0)
    lifetime.stop()
    assert lifetime.spread_seconds == 20.0
    lifetime.cancel()
    assert lifetime.spread_seconds == 0.0


async def test_stop_leaves_time_to_drain() -> None:
    """Closing is called once, with the drain time; a second stop changes nothing."""
    control = Control()
    assert not control.lifetime.over
    control.lifetime.stop()
    control.lifetime.stop()
    await asyncio.gather(*control.tasks)
    assert (control.closed, control.lifetime.over) == ([DRAIN], True)


async def test_cancellation_closes_without_time_to_drain() -> None:
    """Closing is called once, with a drain time of 0 s."""
    control = Control()
    control.lifetime.cancel()
    await asyncio.gather(*control.tasks)
    assert (control.closed, control.lifetime.over) == ([0.0], True)


async def test_cancellation_cuts_draining_short() -> None:
    """A close that never ends is cancelled and called again without time."""
    control = Control(slow=True)
    control.lifetime.stop()
    await control.draining.wait()
    control.lifetime.cancel()
    await asyncio.gather(*control.tasks)
    assert control.closed == [DRAIN, 0.0]


async def test_cancelled_task_closes_immediately() -> None:
    """If the program fails elsewhere, its TaskGroup cancels every task."""
    control = Control()
    await asyncio.sleep(0)
    control.tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await control.tasks[0]
    assert control.closed == [0.0]


async def test_error_of_closing_is_raised_by_the_task() -> None:
    """The task that waits for the end raises the error, so it is not lost."""
    control = Control()

    async def fails(grace: float) -> None:
        raise ValueError(f"{grace}")

    task = asyncio.create_task(control.lifetime.until_over(fails))
    control.lifetime.stop()
    with pytest.raises(ValueError, match=r"7\.0"):
        await task
    await asyncio.gather(*control.tasks)


async def test_pause_ends_with_the_lifetime() -> None:
    """Periodic work does not delay the end, and a pause after the end returns immediately."""
    control = Control()
    pausing = asyncio.create_task(control.lifetime.pause(3600.0))
    control.lifetime.stop()
    await pausing
    await control.lifetime.pause(3600.0)
    await asyncio.gather(*control.tasks)
