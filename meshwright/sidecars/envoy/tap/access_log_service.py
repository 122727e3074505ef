"""Server of Envoy's access log service, for watched requests.

https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/accesslog/v3/als.proto
"""

import asyncio
import time
from typing import Final

from meshwright.sidecars.contract.contexts import TappedHere
from meshwright.sidecars.envoy.tap.tapped_requests import requests
from xds.budget import LimitKind, check
from xds.hooks import StreamEnd
from xds.server.streams.call import Call, Result
from xds.transport import Transport

METHOD: Final = ("envoy.service.accesslog.v3.AccessLogService", "StreamAccessLogs")

MESSAGE_BYTES: Final = 256 * 1024
"""Greatest message in bytes: Envoy sends a batch at 16 KiB, plus one entry with a request's line."""
SILENCE_SECONDS: Final = 30.0
"""Seconds without a message after which a stream ends; a proxy with more requests opens another."""


async def take_requests(tapped: TappedHere, call: Call, transport: Transport) -> Result:
    """Receive a proxy's reports of tapped requests, as long as a person watches the proxy."""
    while (message := await _next(transport)) is not None:
        check(LimitKind.REQUEST, len(message), MESSAGE_BYTES)
        began = time.thread_time()
        wanted = tapped(call.node_key, requests(message))
        call.spent(began)
        if not wanted:
            break
        await call.rest()
    return StreamEnd.CLIENT, ""


async def _next(transport: Transport) -> bytes | None:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await transport.read()
    except TimeoutError:
        return None
