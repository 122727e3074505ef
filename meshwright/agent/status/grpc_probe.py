"""The gRPC health probe: the one place in the agent that speaks gRPC."""

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


async def is_serving(target: str, service: str) -> str:
    """Ask the standard health service at HOST:PORT; return nothing if it serves, else what it says."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
    name: str = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return "" if name == "SERVING" else name
