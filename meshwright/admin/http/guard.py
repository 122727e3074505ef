"""Guard of the debug server: only requests for known hosts are answered (against DNS rebinding)."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_SERVED: Final = (
    "the server does not answer requests for this host: add the host name to the setting debug_hosts"
)

_KNOWN: Final = web.RequestKey("known hosts", tuple[str, ...])
_ORIGIN: Final = re.compile(r"(https?)://([^\s/?#@\\]+)", re.IGNORECASE)
"""The origin of a page: a scheme, a host and a port alone (RFC 6454, 7.1)."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
"""Default port of a scheme (RFC 9110, 4.2.1 and 4.2.2)."""


def host_of(header: str) -> str:
    """Return the host of a `Host` header without port and brackets, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def permitted(header: str, configured: Iterable[str]) -> bool:
    """Return True if a `Host` header names loopback or one of the `configured` hosts.

    If a page of another site lets its name resolve to loopback, the browser still sends the name of the site.
    """
    return host_of(header) in LOOPBACK_NAMES | {host.lower() for host in configured}


def is_of_another_site(request: web.Request) -> bool:
    """Return True if a browser sends the request for a page of another site. Other clients send no origin.

    A page cannot set Origin or Sec-Fetch-Site (the Fetch standard, "forbidden request-header"). Only host
    and port are compared, because a proxy in front may terminate TLS. If the browser reports the same
    origin, Origin may also be another known host, because a proxy may replace Host, or `null`, for a page
    without a referrer ("append a request Origin header").
    """
    origins, site = request.headers.getall("Origin", ()), request.headers.get("Sec-Fetch-Site")
    if site not in (None, "same-origin") or len(origins) > 1:
        return True
    if not origins:
        return False
    origin = _ORIGIN.fullmatch(origins[0])
    if origin is None:
        return origins[0] != "null" or site is None
    if _is_at(origin[1].lower(), origin[2], request.headers.get("Host", "")):
        return False
    return site is None or not permitted(origin[2], request.get(_KNOWN, ()))


def _is_at(scheme: str, origin: str, host: str) -> bool:
    """Return True if two hosts with ports are equal. Host names have no case (RFC 9110, 4.2.3)."""
    usual = _DEFAULT_PORTS[scheme]
    try:
        one, other = urlsplit(f"//{origin}"), urlsplit(f"//{host}")
        return (one.hostname, one.port or usual) == (other.hostname, other.port or usual)
    except ValueError:  # invalid port or address
        return False


def known_hosts_only(configured: Iterable[str]) -> Middleware:
    """Return a middleware for answering requests with an unknown `Host` header with status 421."""
    hosts = tuple(configured)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not permitted(request.headers.get("Host", ""), hosts):
            return web.json_response({"error": NOT_SERVED}, status=421)
        request[_KNOWN] = hosts
        return await handler(request)

    return middleware
