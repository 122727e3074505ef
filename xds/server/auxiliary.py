"""The services beside discovery: health checks, and the client status service (CSDS)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from protos.envoy.service.status.v3 import csds_pb2
from xds.budget import LimitKind, check
from xds.cache import NodeKey
from xds.discovery import AGGREGATED
from xds.hooks import StreamEnd
from xds.protocol.wire import WireError
from xds.server.streams.call import Call, Result
from xds.transport import Transport

REQUEST_BYTES: Final = 64 * 1024
"""Greatest size of a request to these services, in bytes."""

StatusOf = Callable[[Call, csds_pb2.ClientStatusRequest], Awaitable[csds_pb2.ClientStatusResponse]]

_KNOWN: Final = ("", AGGREGATED)
_SERVING: Final = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
_NOT_SERVING: Final = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
_UNKNOWN: Final = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)


async def check_health(hold_reason: Callable[[NodeKey], str], call: Call, transport: Transport) -> Result:
    """Serve Health/Check: SERVING for the server and for aggregated discovery, NOT_FOUND for other services.

    For aggregated discovery the call ends with HELD while the client's node has no configuration.
    """
    service = await _service(transport)
    if service not in _KNOWN:
        return StreamEnd.NOT_FOUND, "unknown service"
    if service and (word := hold_reason(call.node_key)):
        return StreamEnd.HELD, word
    await transport.write(_SERVING.SerializeToString())
    return StreamEnd.CLIENT, ""


async def watch_health(call: Call, transport: Transport) -> Result:
    """Serve Health/Watch: SERVING until the server shuts down."""
    known = await _service(transport) in _KNOWN
    left = asyncio.Event()
    call.on_leave = left.set  # not before the request, because a call without one must end at once
    await call.write(transport, (_SERVING if known else _UNKNOWN).SerializeToString())
    await left.wait()
    if known and call.leaving is not None and call.leaving[0] is StreamEnd.SHUTDOWN:
        await call.write(transport, _NOT_SERVING.SerializeToString())
    return call.leaving or (StreamEnd.SHUTDOWN, "")


async def fetch_status(status_of: StatusOf, call: Call, transport: Transport) -> Result:
    """Serve FetchClientStatus: a client receives the status of its own streams only."""
    return await _answer(status_of, call, transport, await transport.read() or b"")


async def stream_status(status_of: StatusOf, call: Call, transport: Transport) -> Result:
    """Serve StreamClientStatus: one status of the client's own streams for each request."""
    while (message := await transport.read()) is not None:
        await call.rest()
        await _answer(status_of, call, transport, message)
    return StreamEnd.CLIENT, ""


async def _service(transport: Transport) -> str:
    message = await transport.read() or b""
    check(LimitKind.REQUEST, len(message), REQUEST_BYTES)
    try:
        return str(health_pb2.HealthCheckRequest.FromString(message).service)
    except DecodeError as error:
        raise WireError("the request is not a HealthCheckRequest") from error


async def _answer(status_of: StatusOf, call: Call, transport: Transport, message: bytes) -> Result:
    check(LimitKind.REQUEST, len(message), REQUEST_BYTES)
    try:
        request = csds_pb2.ClientStatusRequest.FromString(message)
    except DecodeError as error:
        raise WireError("the request is not a ClientStatusRequest") from error
    try:
        await call.write(transport, (await status_of(call, request)).SerializeToString())
    finally:
        call.bill.release(csds_pb2.ClientStatusResponse)
    return StreamEnd.CLIENT, ""
