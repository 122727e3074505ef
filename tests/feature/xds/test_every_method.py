"""Tests that every registered method is authenticated, counted, rechecked and ended.

The list is the server's own handlers, so that new methods are included.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import grpc
import grpc.aio
import pytest

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.budget import LimitKind
from xds.cache import NodeKey
from xds.discovery import CLIENT_STATUS, DISCOVERY, HEALTH
from xds.hooks import Peer, StreamEnd, StreamRefused
from xds.limits import Limits
from xds.protocol.wire import Node
from xds.server.ads import AdsServer
from xds.server.tls import Plaintext
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
ENDED: Final = 10.0
"""Seconds after which a call counts as one that goes on."""


class Doorkeeper:
    """An authenticator that admits every peer until a reason is set, and counts its calls."""

    def __init__(self) -> None:
        self.reason = ""
        self.asked = 0

    def authenticate(self, peer: Peer) -> NodeKey:
        """Refuse with the present reason, if there is one."""
        self.asked += 1
        if self.reason:
            raise StreamRefused(self.reason)
        return NodeKey("n")

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept every node."""


def registered() -> list[str]:
    """Return the path of every method with a handler."""
    server = AdsServer(None, Doorkeeper(), Plaintext.ON_LOOPBACK)  # type: ignore[arg-type] # serves nobody
    return sorted(method for handler in server._handlers() for method in handler._method_handlers)


METHODS: Final = registered()
_REQUEST: Final = {
    Variant.SOTW: discovery_pb2.DiscoveryRequest,
    Variant.DELTA: discovery_pb2.DeltaDiscoveryRequest,
}
FIRST: Final = {
    f"/{discovery.service}/{discovery.method}": _REQUEST[discovery.variant](
        type_url=discovery.type_url or "type.googleapis.com/t", node={"id": "n"}
    ).SerializeToString()
    for discovery in DISCOVERY
}
"""A request after which the call stays open, where it is not the empty one."""
AT_ONCE: Final = (f"/{CLIENT_STATUS}/FetchClientStatus", f"/{HEALTH}/Check")
"""Methods that end by themselves, when their one request was answered."""
LASTING: Final = [method for method in METHODS if method not in AT_ONCE]


async def begin(channel: grpc.aio.Channel, method: str) -> Any:
    """Call a method with a request. A unary method is the same on the wire."""
    call = channel.stream_stream(method)()
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the status says the same
        await call.write(FIRST.get(method, b""))
    return call


async def code(call: Any) -> grpc.StatusCode:
    """Read until the call ends, and return its status."""
    async with asyncio.timeout(ENDED):
        with contextlib.suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:
                continue
        return await call.code()


def test_registered_methods_are_the_expected_ones() -> None:
    """A new method must be added here, and is tested below."""
    assert (
        sorted(
            [
                *(f"/{discovery.service}/{discovery.method}" for discovery in DISCOVERY),
                *(f"/{CLIENT_STATUS}/{method}" for method in ("FetchClientStatus", "StreamClientStatus")),
                *(f"/{HEALTH}/{method}" for method in ("Check", "Watch")),
            ]
        )
        == METHODS
    )


async def test_caller_is_authenticated_as_one_object_per_connection(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """The guard and the server share the same peer, and its certificate is the key of the account."""
    served = await serve()
    call = await begin(connect(served.port).channel, LASTING[0])
    await eventually(lambda: served.server.calls == 2)  # the client also has its own stream
    known = {id(use.peer) for use in served.server._guard._connections._uses.values()}
    peers = [item.peer for item in served.server._calls.values()]
    assert known <= {id(peer) for peer in peers}
    (key,) = served.server._accounts._accounts
    assert peers[0].certificate is key
    call.cancel()


@pytest.mark.parametrize("method", METHODS)
async def test_call_without_a_certificate_is_not_served(serve: Serve, connect: Connect, method: str) -> None:
    """The handshake fails before any method is reached."""
    keeper = Doorkeeper()
    client = connect((await serve(keeper)).port, certificate=False)

    assert await code(await begin(client.channel, method)) is grpc.StatusCode.UNAVAILABLE
    assert keeper.asked == 0


@pytest.mark.parametrize("method", METHODS)
async def test_call_with_a_foreign_certificate_is_not_served(
    serve: Serve, connect: Connect, another_pki: Any, pki: Any, method: str
) -> None:
    """The authority is not the mesh's, so the handshake fails."""
    keeper = Doorkeeper()
    client = connect((await serve(keeper)).port, as_pki=replace(another_pki, roots=pki.roots))

    assert await code(await begin(client.channel, method)) is grpc.StatusCode.UNAVAILABLE
    assert keeper.asked == 0


@pytest.mark.parametrize("method", METHODS)
async def test_s4_unknown_client_is_refused_before_its_request(
    serve: Serve, connect: Connect, method: str
) -> None:
    """A unary method refuses before the request has arrived, too."""
    keeper = Doorkeeper()
    served = await serve(keeper)
    channel = connect(served.port).channel
    keeper.reason = "revoked"

    assert await code(channel.stream_stream(method)()) is grpc.StatusCode.PERMISSION_DENIED
    assert "revoked" in served.seen.refusals


@pytest.mark.parametrize("method", LASTING)
async def test_s9_every_call_counts_against_the_stream_limit(
    serve: Serve, connect: Connect, eventually: Eventually, method: str
) -> None:
    """Two calls of one method reach the limit. A call of each method is refused with limit and value."""
    served = await serve(limits=Limits(streams_per_certificate=3))  # the client's own stream counts too
    channel = connect(served.port).channel
    calls = [await begin(channel, method) for _ in range(2)]
    await eventually(lambda: served.server.calls == 3)

    for other in METHODS:
        assert await code(channel.stream_stream(other)()) is grpc.StatusCode.RESOURCE_EXHAUSTED, other
    assert served.seen.excesses == [(LimitKind.STREAMS, 4, 3)] * len(METHODS)
    assert served.seen.refusals == [StreamEnd.TOO_MANY] * len(METHODS)
    calls[0].cancel()
    await eventually(lambda: served.server.calls == 2)
    again = await begin(channel, method)
    await eventually(lambda: served.server.calls == 3)
    assert not again.done()


@pytest.mark.parametrize("method", LASTING)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "with the next round"])
async def test_s4_revoked_client_loses_its_call(
    serve: Serve, connect: Connect, eventually: Eventually, method: str, at_once: bool
) -> None:
    """A lasting call ends when the server is told to recheck, and at the regular interval."""
    keeper = Doorkeeper()
    served = await serve(keeper, Limits(recheck_seconds=3600.0 if at_once else 0.02))
    call = await begin(connect(served.port).channel, method)
    await eventually(lambda: served.server.calls == 2)
    keeper.reason = "revoked"
    if at_once:
        served.server.recheck()

    assert await code(call) is grpc.StatusCode.PERMISSION_DENIED
    await eventually(lambda: served.server.calls == 0)


@pytest.mark.parametrize("method", LASTING)
async def test_lasting_call_is_not_ended_by_rechecks(
    serve: Serve, connect: Connect, eventually: Eventually, method: str
) -> None:
    """The call is rechecked at least ten times and stays open. This is the negative control."""
    keeper = Doorkeeper()
    served = await serve(keeper, Limits(recheck_seconds=0.02))
    call = await begin(connect(served.port).channel, method)
    await eventually(lambda: served.server.calls == 2)
    asked = keeper.asked
    await eventually(lambda: keeper.asked > asked + 10)

    assert not call.done()


@pytest.mark.parametrize("method", LASTING)
async def test_s11_call_ends_with_ok_at_shutdown(
    serve: Serve, connect: Connect, eventually: Eventually, method: str
) -> None:
    """The call ends long before the grace period is over."""
    served = await serve()
    call = await begin(connect(served.port).channel, method)
    await eventually(lambda: served.server.calls == 2)
    stopping = asyncio.create_task(served.server.stop(60.0))

    assert await code(call) is grpc.StatusCode.OK
    await asyncio.wait_for(stopping, ENDED)


@pytest.mark.parametrize("method", LASTING)
async def test_s11_call_ends_with_ok_at_its_maximum_age(serve: Serve, connect: Connect, method: str) -> None:
    """A call has a maximum age."""
    served = await serve(limits=Limits(age_seconds=0.05))

    assert await code(await begin(connect(served.port).channel, method)) is grpc.StatusCode.OK


@pytest.mark.parametrize("method", METHODS)
async def test_invalid_request_is_an_invalid_argument(serve: Serve, connect: Connect, method: str) -> None:
    """The status is INVALID_ARGUMENT, and not an internal error."""
    served = await serve()
    call = connect(served.port).channel.stream_stream(method)()
    await call.write(b"\xff\xff")

    assert await code(call) is grpc.StatusCode.INVALID_ARGUMENT
