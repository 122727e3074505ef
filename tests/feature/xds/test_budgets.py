"""Tests of the budget that all calls of a certificate share, with real clients."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from protos.envoy.service.status.v3 import csds_pb2
from xds.budget import LimitKind
from xds.cache import GroupKey, NodeKey
from xds.discovery import CLIENT_STATUS
from xds.hooks import Peer, StreamEnd, StreamRefused
from xds.limits import Limits
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Node
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
TOO_MUCH = grpc.StatusCode.RESOURCE_EXHAUSTED
OTHER = "type.googleapis.com/other"


def publish(served: Any, *names: str) -> None:
    """Publish endpoints of these names to all clients."""
    resources = [encode(endpoint_pb2.ClusterLoadAssignment(cluster_name=name)) for name in names]
    served.cache.publish({GroupKey("g"): Snapshot.of(resources)}, {NodeKey("n"): GroupKey("g")})


def asked_for(served: Any) -> list[list[str]]:
    """Return the types that each stream has requested."""
    return [[item.type_url for item in status.types] for status in served.server.statuses()]


def _is_here(served: Any) -> bool:
    return bool(served.server.calls)


def _have_asked(served: Any, streams: int, types: list[str]) -> bool:
    return asked_for(served) == [types] * streams


def _has_asked(served: Any) -> bool:
    return [OTHER] in asked_for(served)


def long(*words: str, count: int = 40_000) -> discovery_pb2.DeltaDiscoveryRequest:
    """Return a request of megabytes with `count` names that begin with these words."""
    names = [f"{'.'.join(words)}{n:06}" + "x" * 60 for n in range(count)]
    return discovery_pb2.DeltaDiscoveryRequest(
        type_url=OTHER, resource_names_subscribe=names, node={"id": "u1"}
    )


async def read_to_the_end(client: Any) -> tuple[grpc.StatusCode, str]:
    """Read until the stream ends, and return its status and message."""
    async with asyncio.timeout(30.0):
        with contextlib.suppress(grpc.aio.AioRpcError):  # the status is read below
            while await client.call.read() is not grpc.aio.EOF:
                continue
    code, words = await client.status()
    return code, words


@pytest.mark.parametrize(
    ("limits", "excess"),
    [
        (Limits(names_per_certificate=5), (LimitKind.NAMES, 6, 5)),
        (Limits(types_per_certificate=1), (LimitKind.TYPES, 2, 1)),
        (Limits(bytes_per_certificate=17_000), (LimitKind.BYTES, 17_460, 17_000)),
    ],
    ids=lambda item: item[0] if isinstance(item, tuple) else "",
)
@pytest.mark.parametrize("variant", list(Variant))
async def test_streams_of_one_certificate_share_its_budget(
    serve: Serve,
    connect: Connect,
    pki: Any,
    eventually: Eventually,
    limits: Limits,
    excess: tuple[LimitKind, int, int],
    variant: Variant,
) -> None:
    """The second stream exceeds the limit and ends. A client with another certificate has its own budget."""
    served = await serve(limits=limits)
    one = connect(served.port, variant)
    await one.ask(ENDPOINT, "a", "b", "c", node="n1")
    await eventually(lambda: asked_for(served) == [[ENDPOINT]])
    other = connect(served.port, variant, as_pki=pki.second)
    await other.ask(ENDPOINT, "a", "b", "c", node="n2")
    await eventually(lambda: asked_for(served) == [[ENDPOINT]] * 2)
    two = connect(served.port, variant)
    await two.ask(ENDPOINT, "d", "e", "f", node="n1")

    code, words = await two.status()
    bound, value, limit = excess
    assert code is TOO_MUCH
    assert words.startswith(f"{value} ")
    assert words.endswith(f"; {limit} are allowed")
    assert served.seen.excesses == [(bound, value, limit)]
    assert (StreamEnd.TOO_LARGE, words) in served.seen.endings
    await eventually(lambda: asked_for(served) == [[ENDPOINT]] * 2)


async def test_ended_stream_frees_its_budget(serve: Serve, connect: Connect, eventually: Eventually) -> None:
    """An Envoy that reconnects repeatedly never reaches the limit."""
    served = await serve(limits=Limits(names_per_certificate=5))
    for number in range(5):
        client = connect(served.port, Variant.DELTA)
        await client.ask(ENDPOINT, *(f"{number}.{n}" for n in range(5)))
        await eventually(lambda: asked_for(served) == [[ENDPOINT]])
        client.call.cancel()
        await eventually(lambda: served.server.calls == 0)

    assert served.seen.excesses == []


async def test_sidecar_with_ten_thousand_clusters_can_reconnect(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """The default limits permit its new stream while the old one is not yet found dead."""
    served = await serve()
    names = [f"cluster-{n:05}.namespace.svc.cluster.local|8080|" + "x" * 30 for n in range(10_000)]
    held = dict.fromkeys(names, "0123456789abcdef")
    requests = [
        discovery_pb2.DeltaDiscoveryRequest(
            type_url=CLUSTER, initial_resource_versions=held, node={"id": "u1", "cluster": "c" * 61_000}
        ),
        discovery_pb2.DeltaDiscoveryRequest(
            type_url=ENDPOINT, resource_names_subscribe=names, initial_resource_versions=held
        ),
    ]
    for number in range(1, 3):
        client = connect(served.port, Variant.DELTA)
        for request in requests:
            await client.send(request)
        await eventually(partial(_have_asked, served, number, [CLUSTER, ENDPOINT]))

    assert served.seen.excesses == []
    assert served.seen.endings == []


async def test_unsubscribed_names_are_freed(serve: Serve, connect: Connect) -> None:
    """One stream can subscribe and unsubscribe forever, if it acknowledges the responses."""
    served = await serve(limits=Limits(names_per_certificate=5))
    publish(served)
    client = connect(served.port, Variant.DELTA)
    for number in range(5):
        names = [f"{number}.{n}" for n in range(5)]
        await client.ask(ENDPOINT, *names)
        response = await client.response()
        assert response.removed_resources == names
        await client.send(
            discovery_pb2.DeltaDiscoveryRequest(
                type_url=ENDPOINT, resource_names_unsubscribe=names, response_nonce=response.nonce
            )
        )


async def test_unacknowledged_responses_count_against_the_budget(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """A client that never acknowledges, and requests ever new names, reaches the limit."""
    served = await serve(limits=Limits(bytes_per_certificate=100_000))
    publish(served)
    client = connect(served.port, Variant.DELTA)
    for number in range(100):
        names = [f"{number}.{n}" + "x" * 100 for n in range(20)]
        await client.ask(ENDPOINT, *names)
        await client.send(
            discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT, resource_names_unsubscribe=names)
        )

    await eventually(lambda: served.seen.excesses)
    assert [bound for bound, _, _ in served.seen.excesses] == [LimitKind.BYTES]


@pytest.mark.parametrize("variant", list(Variant))
async def test_type_url_has_a_maximum_length(serve: Serve, connect: Connect, variant: Variant) -> None:
    """The server keeps type URLs and writes them to logs, so their length is limited."""
    served = await serve(limits=Limits(type_url_characters=30))
    client = connect(served.port, variant)
    await client.ask("t" * 31, "a")

    assert await client.status() == (TOO_MUCH, "31 characters in a type_url; 30 are allowed")


@pytest.mark.parametrize("variant", list(Variant))
async def test_long_request_is_answered_like_a_short_one(
    serve: Serve, connect: Connect, variant: Variant
) -> None:
    """A request with 20 000 names gets the existing resource."""
    served = await serve()
    publish(served, "there")
    client = connect(served.port, variant)
    names = [f"{n:05}" + "x" * 80 for n in range(20_000)]
    await client.ask(ENDPOINT, *names, "there")

    response = await client.response()
    assert len(response.resources) == 1


async def test_expensive_request_does_not_delay_other_clients(
    serve: Serve, connect: Connect, pki: Any, eventually: Eventually
) -> None:
    """With a thousandth of the loop, a request of megabytes waits, while another client is served.

    Without the limit, which is the negative control, both are handled soon.
    """
    for share in (0.001, None):
        served = await serve(limits=Limits(loop_share=share, loop_burst_seconds=0.005))
        publish(served, "a")
        greedy = connect(served.port, Variant.DELTA)
        await eventually(partial(_is_here, served))
        await greedy.send(long())
        other = connect(served.port, Variant.DELTA, as_pki=pki.second)
        await other.ask(ENDPOINT, "a", node="n2")
        assert len((await other.response()).resources) == 1
        if share is None:
            await eventually(partial(_has_asked, served))
        else:
            assert sorted(asked_for(served)) == [[], [ENDPOINT]]


async def test_requests_that_wait_count_against_the_budget(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """Two large requests that wait for the loop exceed the budget, so one stream is ended."""
    limits = Limits(loop_share=0.001, loop_burst_seconds=0.005, bytes_per_certificate=8_000_000)
    served = await serve(limits=limits)
    first, second = (connect(served.port, Variant.DELTA) for _ in range(2))
    await first.send(long())
    await eventually(lambda: served.server.calls == 2)
    await second.send(long())

    ends = [asyncio.create_task(read_to_the_end(item)) for item in (first, second)]
    done, others = await asyncio.wait(ends, timeout=30.0, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result()[0] for task in done] == [TOO_MUCH]
    for task in others:
        task.cancel()


async def test_client_status_answer_has_a_maximum_size(serve: Serve, connect: Connect) -> None:
    """A larger answer is refused with the option that makes it smaller."""
    served = await serve(limits=Limits(client_status_bytes=20_000))
    names = [f"{n:03}" + "x" * 100 for n in range(300)]
    publish(served, *names)
    client = connect(served.port, Variant.DELTA)
    await client.ask(ENDPOINT, *names)
    await client.response()
    method = f"/{CLIENT_STATUS}/FetchClientStatus"
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await client.channel.unary_unary(method)(b"")

    assert failed.value.code() is TOO_MUCH
    assert "20000 are allowed" in str(failed.value.details())
    assert "exclude_resource_contents" in str(failed.value.details())
    unsubscribe = discovery_pb2.DeltaDiscoveryRequest(
        type_url=ENDPOINT, resource_names_unsubscribe=names[5:], node={"id": "u1"}
    )
    await client.send(unsubscribe)
    await client.ask(OTHER, "x")  # answered after the earlier requests
    await client.response()
    answer = csds_pb2.ClientStatusResponse.FromString(await client.channel.unary_unary(method)(b""))
    assert [len(config.generic_xds_configs) for config in answer.config] == [6]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Disable the garbage collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Revoking:
    """An authenticator that admits every peer until revoked."""

    revoked = False

    def authenticate(self, peer: Peer) -> NodeKey:
        """Refuse a revoked peer."""
        if self.revoked:
            raise StreamRefused("revoked")
        return NodeKey("n")

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept every node."""


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("how", ["client", "excess", "invalid", "revoked", "shutdown"])
async def test_ended_stream_is_freed_without_the_garbage_collector(
    serve: Serve, connect: Connect, eventually: Eventually, how: str
) -> None:
    """A reference cycle would keep a refused client's data until a collection. Clients could pile it up."""
    keeper = Revoking()
    served = await serve(keeper, Limits(names_per_certificate=5))
    publish(served)
    client = connect(served.port, Variant.DELTA)
    await client.ask(ENDPOINT, "a", "b")
    await client.response()
    held = [weakref.ref(conversation._stream) for conversation in served.server._conversations.values()]
    match how:
        case "client":
            client.call.cancel()
        case "excess":
            await client.ask(ENDPOINT, "c", "d", "e", "f")
        case "invalid":
            await client.call.write(b"\xff\xff")
        case "revoked":
            keeper.revoked = True
            served.server.recheck()
        case _:
            await served.server.stop(5.0)

    assert len(held) == 1
    await eventually(lambda: held[0]() is None)
