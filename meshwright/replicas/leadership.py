"""Works of the leader, which run only while this server leads the other servers of the mesh."""

import asyncio
from collections.abc import Callable, Coroutine

import structlog

from meshwright.records.contract import NO_LEADER, Epoch

_log = structlog.get_logger("replicas")

Work = Callable[[Epoch], Coroutine[None, None, None]]
"""A work of the leader: runs until cancelled, with the epoch for the writes of the work."""


class Leadership:
    """Leadership of this server, for all works of the leader. For one event loop.

    The store's own `lead` calls `begin` and `end`. Between the loss of the leadership and the end of the
    works there may be a turn of the event loop, so works write with their epoch.
    """

    def __init__(self, changed: Callable[[Epoch], None] = lambda _: None) -> None:
        """Begin without leadership; `changed` is called with each new epoch, NO_LEADER at the end of one."""
        self._changed = changed
        self._epoch = NO_LEADER
        self._turned = asyncio.Event()
        self._give_up: Callable[[], None] = lambda: None

    @property
    def epoch(self) -> Epoch:
        """Return the epoch of the present leadership, or NO_LEADER."""
        return self._epoch

    def begin(self, epoch: Epoch, give_up: Callable[[], None] = lambda: None) -> None:
        """Begin a term; `give_up` is called if a work ends, so that another server leads."""
        self._give_up = give_up
        self._turn(epoch)

    def end(self) -> None:
        """End the term, if any."""
        self._turn(NO_LEADER)

    async def lead(self, work: Work) -> None:
        """Run `work` in each term of this server, until cancelled.

        An error of `work` is logged, and the leadership is given up, so that another server tries. The same
        holds if `work` ends by itself.
        """
        while True:
            # Both in one turn of the event loop, so that no change of the term is missed.
            turned, epoch = self._turned, self._epoch
            if not epoch:
                await turned.wait()
                continue
            task = asyncio.create_task(work(epoch), name="work of the leader")
            ending = asyncio.create_task(turned.wait(), name="end of the term")
            try:
                await asyncio.wait((task, ending), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ending.cancel()
                if not task.done():
                    task.cancel()
                    await asyncio.wait((task,))  # the next term must not begin beside the old work
            self._report(task)
            await turned.wait()

    def _report(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        if error := task.exception():
            _log.error("work of the leader failed", exc_info=error)
        self._give_up()

    def _turn(self, epoch: Epoch) -> None:
        if epoch == self._epoch:
            return
        self._epoch = epoch
        self._turned.set()
        self._turned = asyncio.Event()
        self._changed(epoch)
