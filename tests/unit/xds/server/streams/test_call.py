"""What a call does is done by the task that serves it, which goes on when the call has ended."""

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
    """Return how a call ended, when what its handler does then has waited as well."""
    ending = await call.run(work)
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    return ending


async def test_a_call_that_is_ended_cuts_its_work_off_and_nothing_else() -> None:
    """The first reason counts."""
    call = _call()
    served = asyncio.create_task(_served(call, _goes_on()))
    await asyncio.sleep(0)
    call.end(StreamEnd.AGED, "one")
    call.end(StreamEnd.SLOW, "two")
    assert await served == (StreamEnd.AGED, "one")


async def test_a_call_that_ends_in_the_midst_of_its_last_work_is_not_cut_off_after_it() -> None:
    """Whoever ends it may be the work itself, which then has nothing more to wait for."""
    call = _call()

    async def work() -> Result:
        call.end(StreamEnd.AGED)
        return StreamEnd.CLIENT, ""

    assert await _served(call, work()) == (StreamEnd.AGED, "")


async def test_a_call_that_is_over_does_no_work() -> None:
    """What was due at first may have ended it."""
    call = _call()
    call.end(StreamEnd.SHUTDOWN)
    assert await _served(call, _goes_on()) == (StreamEnd.SHUTDOWN, "")


async def test_who_cancels_the_handler_cancels_the_call() -> None:
    """As gRPC does where the client has gone; nothing is written any more."""
    call = _call()
    served = asyncio.create_task(_served(call, _goes_on()))
    await asyncio.sleep(0)
    served.cancel()
    with pytest.raises(asyncio.CancelledError):
        await served
    assert call.is_over


async def test_an_error_of_ours_is_raised_to_the_handler_once() -> None:
    """And is not kept with the call: it holds the frames that it went through."""
    call = _call()
    served = asyncio.create_task(_served(call, _goes_on()))
    await asyncio.sleep(0)
    call.fail(KeyError("ours"))
    with pytest.raises(KeyError):
        await served
    assert call.is_over
