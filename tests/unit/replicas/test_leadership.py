"""Tests of works that run only while a server leads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from meshwright.records.contract import NO_LEADER, Epoch
from meshwright.replicas.leadership import Leadership, Work
from tests.tools.deadline import until


@asynccontextmanager
async def _leading(leadership: Leadership, *works: Work) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(leadership.lead(work)) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_works_run_in_each_term_with_its_epoch() -> None:
    """All works end with the term, and a new term directly after another one starts them again."""
    running, epochs = list[Epoch](), list[Epoch]()
    leadership = Leadership(epochs.append)

    async def work(epoch: Epoch) -> None:
        running.append(epoch)
        try:
            await asyncio.Event().wait()
        finally:
            running.remove(epoch)

    async with _leading(leadership, work, work):
        leadership.begin(Epoch(1))
        await until(lambda: running == [1, 1])
        leadership.end()
        leadership.begin(Epoch(2))
        await until(lambda: running == [2, 2])
        leadership.end()
        await until(lambda: running == [])
    assert epochs == [1, NO_LEADER, 2, NO_LEADER]


async def test_failed_work_gives_the_leadership_up() -> None:
    """Another server may have more success. The next term of this server tries again."""
    given_up, begun = asyncio.Event(), list[Epoch]()
    leadership = Leadership()

    async def fails(epoch: Epoch) -> None:
        begun.append(epoch)
        raise ValueError("a fault")

    async with _leading(leadership, fails):
        for number in (1, 2):
            leadership.begin(Epoch(number), given_up.set)
            await given_up.wait()
            given_up.clear()
            assert leadership.epoch == number
            leadership.end()
    assert begun == [1, 2]


async def test_leader_that_stops_leaves_no_work_behind() -> None:
    """The work has ended when the cancelled task has."""
    ended, leadership = list[bool](), Leadership()
    leadership.begin(Epoch(1))
    begun = asyncio.Event()

    async def work(_: Epoch) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async with _leading(leadership, work):
        await begun.wait()
    assert ended == [True]
