"""Tests of many streams on one connection, after a restart, and under bursts of updates."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
import pytest

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.cache import GroupKey, NodeKey
from xds.discovery import DISCOVERY
from xds.limits import Limits
from xds.protocol.resources.resource import ENDPOINT, Resource, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.server.ads import SERVICE
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
MANY = Limits(streams_per_second=None).without_budgets()


def endpoints(name: str, edition: int = 0) -> Resource:
    """Return a small resource."""
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name=name)
    assignment.policy.overprovisioning_factor.value = edition + 1
    return encode(assignment)


def publish(cache: Any, *resources: Resource) -> None:
    """Publish these resources to all clients."""
    cache.publish({GroupKey("g"): Snapshot.of(resources)}, {NodeKey("n"): GroupKey("g")})


async def ask(channel: grpc.aio.Channel, method: str, name: str) -> Any:
    """Open a stream and request endpoints."""
    call = channel.stream_stream(method)()
    request = discovery_pb2.DiscoveryRequest(type_url=ENDPOINT, resource_names=[name], node={"id": "n"})
    await call.write(request.SerializeToString())
    return call


async def names(call: Any) -> list[str]:
    """Wait for a response, and return the names in it."""
    async with asyncio.timeout(60):
        data = await call.read()
    assert data is not grpc.aio.EOF, await call.code()
    bodies = discovery_pb2.DiscoveryResponse.FromString(data).resources
    return [endpoint_pb2.ClusterLoadAssignment.FromString(body.value).cluster_name for body in bodies]


async def test_s13_o9_five_hundred_streams_share_one_connection(serve: Serve, connect: Connect) -> None:
    """An Envoy without ADS opens one stream for each cluster, and each gets only its own updates."""
    served = await serve(limits=MANY)
    publish(served.cache, *(endpoints(f"e{n}") for n in range(500)))
    method = next(
        f"/{discovery.service}/{discovery.method}"
        for discovery in DISCOVERY
        if discovery.type_url == ENDPOINT and discovery.variant is Variant.SOTW
    )
    channel = connect(served.port).channel
    calls = [await ask(channel, method, f"e{n}") for n in range(500)]

    assert [await names(call) for call in calls] == [[f"e{n}"] for n in range(500)]
    publish(served.cache, *(endpoints(f"e{n}", int(n == 7)) for n in range(500)))
    assert await names(calls[7]) == ["e7"]
    assert len({status.peer for status in served.server.statuses()}) == 1


async def test_s11_hundred_streams_reconnect_after_a_restart(serve: Serve, connect: Connect) -> None:
    """Each stream ends with OK, and gets all resources again at the next server."""
    first = await serve(limits=MANY)
    publish(first.cache, endpoints("a"))
    method = f"/{SERVICE}/StreamAggregatedResources"
    channel = connect(first.port).channel
    calls = [await ask(channel, method, "a") for _ in range(100)]
    for call in calls:
        await names(call)
    await first.server.stop(30.0)
    assert {await call.code() for call in calls} == {grpc.StatusCode.OK}

    second = await serve(limits=MANY)
    publish(second.cache, endpoints("a"))
    channel = connect(second.port).channel
    calls = [await ask(channel, method, "a") for _ in range(100)]
    assert [await names(call) for call in calls] == [["a"]] * 100


@pytest.mark.parametrize("variant", list(Variant))
async def test_n9_burst_of_updates_is_sent_as_the_latest_state(
    serve: Serve, connect: Connect, variant: Variant
) -> None:
    """A thousand versions need at most ten responses, and the last has the latest version."""
    served = await serve()
    publish(served.cache, endpoints("a"))
    client = connect(served.port, variant)
    await client.ask(ENDPOINT, "a")
    await client.response()
    for edition in range(1, 1001):
        publish(served.cache, endpoints("a", edition))

    count, edition = 0, 0
    while edition < 1001:
        response = await client.response()
        count += 1
        body = response.resources[0]
        value = body.value if variant is Variant.SOTW else body.resource.value
        edition = endpoint_pb2.ClusterLoadAssignment.FromString(value).policy.overprovisioning_factor.value
    assert count <= 10


async def test_n5_heartbeat_is_sent_despite_constant_changes(serve: Serve, connect: Connect) -> None:
    """Another resource changes before each heartbeat is due, but the heartbeat is still sent."""
    served = await serve()
    mortal = replace(endpoints("a"), ttl_seconds=1.5)
    publish(served.cache, mortal, endpoints("b"))
    client, edition = connect(served.port, Variant.DELTA), 0
    await client.ask(ENDPOINT, "a", "b")
    async with asyncio.timeout(20):
        response = await client.response()
        while {resource.name for resource in response.resources} != {"a"}:
            edition += 1
            publish(served.cache, mortal, endpoints("b", edition))
            response = await client.response()
    assert not response.resources[0].HasField("resource")
    assert response.resources[0].version == mortal.version


async def test_s15_response_above_four_megabytes_arrives(serve: Serve, connect: Connect) -> None:
    """The server does not split it. Envoy has no limit, and gRPC clients can raise their 4 MiB."""
    served = await serve(limits=Limits(request_bytes=8 * 1024 * 1024))
    many = [endpoints(f"{n:04}" + "x" * 3000) for n in range(1500)]
    publish(served.cache, *many)
    options = (("grpc.max_receive_message_length", -1),)
    client = connect(served.port, options=options)
    await client.ask(ENDPOINT, *(resource.name for resource in many))

    response = await client.response()
    assert len(response.resources) == 1500
    assert response.ByteSize() > 4 * 1024 * 1024
    assert served.seen.larges == [(ENDPOINT, "", response.ByteSize())]


async def test_s15_client_that_cannot_receive_a_large_response_is_recorded(
    serve: Serve, connect: Connect
) -> None:
    """A client with gRPC's default limit ends its stream. The observer has the client's program."""
    served = await serve(limits=Limits(request_bytes=8 * 1024 * 1024))
    many = [endpoints(f"{n:04}" + "x" * 3000) for n in range(1500)]
    publish(served.cache, *many)
    client = connect(served.port)
    await client.send(
        discovery_pb2.DiscoveryRequest(
            type_url=ENDPOINT,
            resource_names=[resource.name for resource in many],
            node={"id": "n", "user_agent_name": "gRPC Go", "user_agent_version": "1.70.0"},
        )
    )

    async with asyncio.timeout(60):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await client.call.read()
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert [(kind, agent) for kind, agent, _ in served.seen.larges] == [(ENDPOINT, "gRPC Go 1.70.0")]
    assert served.seen.excesses == []
