"""How a driver ends: in order with time to drain, or at once."""

import asyncio
from collections.abc import Coroutine

import pytest

from meshwright.sidecars.contract.lifetime import Lifetime

DRAIN = 7.0


class Control:
    """A driver's end as it is told; with `slow`, draining takes until it is cut short."""

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


async def test_a_stop_leaves_time_to_drain() -> None:
    """Closing is called once, with the drain time; saying it again changes nothing."""
    control = Control()
    assert not control.lifetime.over
    control.lifetime.stop()
    control.lifetime.stop()
    await asyncio.gather(*control.tasks)
    assert (control.closed, control.lifetime.over) == ([DRAIN], True)


async def test_a_cancellation_is_immediate() -> None:
    """Closing is given no time."""
    control = Control()
    control.lifetime.cancel()
    await asyncio.gather(*control.tasks)
    assert (control.closed, control.lifetime.over) == ([0.0], True)


async def test_a_cancellation_cuts_draining_short() -> None:
    """A close that would take for ever is called again without time, and not waited for."""
    control = Control(slow=True)
    control.lifetime.stop()
    await control.draining.wait()
    control.lifetime.cancel()
    await asyncio.gather(*control.tasks)
    assert control.closed == [DRAIN, 0.0]


async def test_a_cancelled_task_closes_at_once() -> None:
    """The program fails elsewhere, and its TaskGroup cancels everybody."""
    control = Control()
    await asyncio.sleep(0)
    control.tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await control.tasks[0]
    assert control.closed == [0.0]


async def test_an_error_of_closing_is_not_swallowed() -> None:
    """It is the task's."""
    control = Control()

    async def fails(grace: float) -> None:
        raise ValueError(f"{grace}")

    task = asyncio.create_task(control.lifetime.until_over(fails))
    control.lifetime.stop()
    with pytest.raises(ValueError, match=r"7\.0"):
        await task
    await asyncio.gather(*control.tasks)


async def test_a_pause_ends_with_the_lifetime() -> None:
    """Whoever comes by from time to time is not waited for."""
    control = Control()
    pausing = asyncio.create_task(control.lifetime.pause(3600.0))
    control.lifetime.stop()
    await pausing
    await control.lifetime.pause(3600.0)
    await asyncio.gather(*control.tasks)
