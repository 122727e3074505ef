"""The gRPC health probe, imported only when used, because grpcio takes memory."""

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


async def is_serving(target: str, service: str) -> str:
    """Call the standard health service at HOST:PORT; return "" if serving, else the answer."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
    name: str = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return "" if name == "SERVING" else name
