"""Tests of coroutines side by side: the first end is the end of all."""

import asyncio

import pytest

from meshwright.etcd.first_end import until_one_ends


async def test_end_of_one_cancels_the_others() -> None:
    """All are over when the function returns, also one that takes time for its end."""
    ended: list[str] = []

    async def endless(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    await until_one_ends(endless("a"), asyncio.sleep(0), endless("b"))
    assert ended == ["a", "b"]


async def test_first_error_is_raised() -> None:
    """An error is never lost, also one that comes from the cancellation."""

    async def fails() -> None:
        raise ValueError("first")

    async def fails_when_cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("second")

    with pytest.raises(ValueError, match="first"):
        await until_one_ends(fails(), fails_when_cancelled())
    with pytest.raises(KeyError, match="second"):
        await until_one_ends(fails_when_cancelled(), asyncio.sleep(0))


async def test_cancellation_reaches_all() -> None:
    """The caller's cancellation ends the coroutines, and then the caller."""
    ended: list[bool] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.create_task(until_one_ends(endless(), endless()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True, True]
