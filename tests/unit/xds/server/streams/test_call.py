"""Tests of a call, whose work runs in the task of its handler, and of the ways in which a call ends."""

import asyncio
from collections.abc import Coroutine

import pytest

from xds.budget import Account
from xds.cache import NodeKey
from xds.hooks import Peer, StreamEnd
from xds.limits import Limits
from xds.server.streams.call import Call, Result


def _call() -> Call:
    return Call(1, NodeKey("a"), Peer(None), Account(Limits()), {})


async def _goes_on() -> Result:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody sets it")


async def _served(call: Call, work: Coroutine[object, object, Result]) -> Result:
    """Return the result of a call, after the handler has waited once more without being cancelled."""
    ending = await call.run(work)
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    return ending


async def test_ended_call_cancels_its_work_but_not_its_handler() -> None:
    """The call returns the first reason, and its handler can continue to wait."""
    call = _call()
    served = asyncio.create_task(_served(call, _goes_on()))
    await asyncio.sleep(0)
    call.end(StreamEnd.AGED, "one")
    call.end(StreamEnd.SLOW, "two")
    assert await served == (StreamEnd.AGED, "one")


async def test_call_ended_by_its_own_work_does_not_cancel_the_handler() -> None:
    """The work itself may end the call and return at once, so that no wait is left to cancel."""
    call = _call()

    async def work() -> Result:
        call.end(StreamEnd.AGED)
        return StreamEnd.CLIENT, ""

    assert await _served(call, work()) == (StreamEnd.AGED, "")


async def test_call_that_has_ended_does_not_start_its_work() -> None:
    """A call may be ended before its work begins, and then returns that reason."""
    call = _call()
    call.end(StreamEnd.SHUTDOWN)
    assert await _served(call, _goes_on()) == (StreamEnd.SHUTDOWN, "")


async def test_cancelled_handler_ends_the_call() -> None:
    """The handler is cancelled by gRPC when the client disconnects; the call is then over."""
    call = _call()
    served = asyncio.create_task(_served(call, _goes_on()))
    await asyncio.sleep(0)
    served.cancel()
    with pytest.raises(asyncio.CancelledError):
        await served
    assert call.is_over


async def test_internal_error_is_raised_to_the_handler() -> None:
    """The handler receives the error of a failed call, and the call is over."""
    call = _call()
    served = asyncio.create_task(_served(call, _goes_on()))
    await asyncio.sleep(0)
    call.fail(KeyError("ours"))
    with pytest.raises(KeyError):
        await served
    assert call.is_over
