"""Who may ask the debug server: requests that name it by a host we know (against DNS rebinding)."""

from collections.abc import Iterable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_SERVED: Final = "this Host is not served; see the setting debug_hosts"


def host_of(header: str) -> str:
    """Return the host of a `Host` header without its port and brackets, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def permitted(header: str, configured: Iterable[str]) -> bool:
    """Say whether a `Host` header names loopback or one of the `configured` hosts.

    A page of another site that has its name resolve to loopback still sends its own name.
    """
    return host_of(header) in LOOPBACK_NAMES | {host.lower() for host in configured}


def is_of_another_site(request: web.Request) -> bool:
    """Say whether a browser asks for a page that is not ours.

    Of a page that sends no referrer, as ours, a form's Origin is `null` (the Fetch standard, "append a
    request Origin header"): then it is what Sec-Fetch-Site says, which no page can.
    """
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    own = f"{request.scheme}://{request.headers.get('Host', '')}"
    known = (None, own, "null") if site == "same-origin" else (None, own)
    return origin not in known or site not in (None, "same-origin")


def known_hosts_only(configured: Iterable[str]) -> Middleware:
    """Make the middleware that answers 421 to a request for a host that is not ours."""
    hosts = tuple(configured)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not permitted(request.headers.get("Host", ""), hosts):
            return web.json_response({"error": NOT_SERVED}, status=421)
        return await handler(request)

    return middleware
