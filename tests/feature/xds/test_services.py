"""Tests of the services beside aggregated discovery, and of their authentication."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.cache import GroupKey, NodeKey
from xds.discovery import DISCOVERY, HEALTH, Discovery
from xds.protocol.resources.resource import CLUSTER, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
PER_TYPE = [discovery for discovery in DISCOVERY if discovery.type_url is not None]


async def test_s1_unserved_method_is_unimplemented(serve: Serve, connect: Connect) -> None:
    """The call fails at once instead of waiting."""
    channel = connect((await serve()).port).channel
    method = "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters"

    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await channel.unary_unary(method)(b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("discovery", PER_TYPE, ids=lambda discovery: discovery.method)
async def test_s6_per_type_stream_has_a_fixed_type(
    serve: Serve, connect: Connect, eventually: Eventually, discovery: Discovery
) -> None:
    """A request without a type has the stream's type, and one of another type is an error."""
    served = await serve()
    call = connect(served.port).channel.stream_stream(f"/{discovery.service}/{discovery.method}")()
    kind = (
        discovery_pb2.DiscoveryRequest
        if discovery.variant is Variant.SOTW
        else discovery_pb2.DeltaDiscoveryRequest
    )
    await call.write(kind(node={"id": "u1"}).SerializeToString())
    await eventually(lambda: _types_asked_for(served))
    assert _types_asked_for(served) == [discovery.type_url]
    await call.write(kind(type_url="type.googleapis.com/other").SerializeToString())

    assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT


def _types_asked_for(served: Any) -> list[str]:
    return [kind.type_url for status in served.server.statuses() for kind in status.types]


async def test_s1_per_type_stream_is_served(serve: Serve, connect: Connect) -> None:
    """A stream of clusters only gets its clusters."""
    served = await serve()
    resource = encode(cluster_pb2.Cluster(name="x"))
    served.cache.publish({GroupKey("g"): Snapshot.of([resource])}, {NodeKey("n"): GroupKey("g")})
    method = "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters"
    call = connect(served.port).channel.stream_stream(method)()
    await call.write(discovery_pb2.DiscoveryRequest(node={"id": "u1"}).SerializeToString())

    response = discovery_pb2.DiscoveryResponse.FromString(await call.read())
    assert [(any_.type_url, response.type_url) for any_ in response.resources] == [(CLUSTER, CLUSTER)]


async def test_health_is_serving_until_the_server_stops(serve: Serve, connect: Connect) -> None:
    """The standard health service reports NOT_SERVING during a stop."""
    served = await serve()
    channel = connect(served.port).channel
    check = channel.unary_unary(
        f"/{HEALTH}/Check", response_deserializer=health_pb2.HealthCheckResponse.FromString
    )
    watch = channel.unary_stream(
        f"/{HEALTH}/Watch", response_deserializer=health_pb2.HealthCheckResponse.FromString
    )(b"")

    assert (await check(b"")).status == health_pb2.HealthCheckResponse.SERVING
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    stopping = asyncio.create_task(served.server.stop(10.0))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watch.cancel()
    await stopping
