"""The services beside discovery: health, and the client status that a client may ask for itself."""

from collections.abc import AsyncIterable, Awaitable, Callable

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2

from protos.envoy.service.status.v3 import csds_pb2
from xds.cache import NodeKey
from xds.services import CLIENT_STATUS, HEALTH

Authenticate = Callable[[grpc.aio.ServicerContext], Awaitable[NodeKey]]
"""Returns whose client this is, or ends the call."""

StatusOf = Callable[[NodeKey, csds_pb2.ClientStatusRequest], csds_pb2.ClientStatusResponse]


def client_status_handler(authenticate: Authenticate, status_of: StatusOf) -> grpc.GenericRpcHandler:
    """Serve ClientStatusDiscoveryService; a client is told of its own streams only."""

    async def fetch(
        request: csds_pb2.ClientStatusRequest, context: grpc.aio.ServicerContext
    ) -> csds_pb2.ClientStatusResponse:
        return status_of(await authenticate(context), request)

    async def stream(
        requests: AsyncIterable[csds_pb2.ClientStatusRequest], context: grpc.aio.ServicerContext
    ) -> None:
        node_key = await authenticate(context)
        async for request in requests:
            await context.write(status_of(node_key, request))

    codec = {
        "request_deserializer": csds_pb2.ClientStatusRequest.FromString,
        "response_serializer": csds_pb2.ClientStatusResponse.SerializeToString,
    }
    return grpc.method_handlers_generic_handler(
        CLIENT_STATUS,
        {
            "FetchClientStatus": grpc.unary_unary_rpc_method_handler(fetch, **codec),
            "StreamClientStatus": grpc.stream_stream_rpc_method_handler(stream, **codec),
        },
    )


def health_handler(authenticate: Authenticate, servicer: health.aio.HealthServicer) -> grpc.GenericRpcHandler:
    """Serve grpc.health.v1.Health, to authenticated clients like everything else."""

    async def check(
        request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        await authenticate(context)
        return await servicer.Check(request, context)

    async def watch(request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext) -> None:
        await authenticate(context)
        await servicer.Watch(request, context)

    codec = {
        "request_deserializer": health_pb2.HealthCheckRequest.FromString,
        "response_serializer": health_pb2.HealthCheckResponse.SerializeToString,
    }
    return grpc.method_handlers_generic_handler(
        HEALTH,
        {
            "Check": grpc.unary_unary_rpc_method_handler(check, **codec),
            "Watch": grpc.unary_stream_rpc_method_handler(watch, **codec),
        },
    )
