"""Guard of the port for other servers: only servers of this mesh ask, and they read except by some acts."""

import asyncio
import ssl
from collections.abc import Callable, Collection
from datetime import datetime
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from certs.errors import PeerRefused
from certs.keys.replica import replica_of
from meshwright.mesh.names import TrustDomain

AT_ONCE: Final = 16
"""Maximum number of questions that are answered at the same time; further ones are refused."""

REPLICA: Final = web.RequestKey("name of the asking server", str)

_READS: Final = frozenset({"GET", "HEAD"})

_log = structlog.get_logger("controller.sharing.peers")


def peers_only(domain: TrustDomain, clock: Callable[[], datetime], acts: Collection[str]) -> Middleware:
    """Return a middleware that answers servers of the mesh only, and changes nothing but by `acts`.

    TLS has verified a certificate below our CA. Proxies and services have one too, and are refused.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            request[REPLICA] = replica_of(_certificate(request), domain, clock())
        except PeerRefused as error:
            address = None if request.transport is None else request.transport.get_extra_info("peername")
            _log.warning("client refused", peer=str(address), reason=error.reason.value, detail=str(error))
            return _refused("only servers of this mesh are answered here", HTTPStatus.FORBIDDEN)
        if request.method not in _READS and request.path not in acts:
            return _refused("this port only reads", HTTPStatus.METHOD_NOT_ALLOWED)
        return await handler(request)

    return middleware


def _certificate(request: web.Request) -> bytes:
    tls = None if request.transport is None else request.transport.get_extra_info("ssl_object")
    der = None if tls is None else tls.getpeercert(binary_form=True)
    return b"" if der is None else ssl.DER_cert_to_PEM_cert(der).encode()


def bounded(unbounded: Collection[str], at_once: int = AT_ONCE) -> Middleware:
    """Return a middleware that answers at most `at_once` questions at a time; long ones do not count."""
    turns = asyncio.Semaphore(at_once)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in unbounded:
            return await handler(request)
        if turns.locked():
            return _refused(
                f"the server answers {at_once} questions already, which is the limit",
                HTTPStatus.SERVICE_UNAVAILABLE,
            )
        async with turns:
            return await handler(request)

    return middleware


def _refused(sentence: str, status: int) -> web.Response:
    return web.json_response({"error": sentence}, status=status)
