"""Guard of the socket in the state directory against requests of web pages.

A browser cannot open a Unix socket. But if a user forwards the socket to a port (`ssh -L`, `socat`), pages
of other sites can send requests: without reading the answer (CSRF), or by a host name that resolves to the
port (DNS rebinding).
"""

from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from meshwright.admin.http.accept import JSON
from meshwright.admin.http.actions import ACTIONS
from meshwright.admin.http.guard import is_of_another_site, permitted

HOST: Final = "the Host header must be localhost or a loopback address"
ELSEWHERE: Final = "the request comes from a page of another site, which must not change anything here"
CONTENT_TYPE: Final = f"the Content-Type header must be {JSON}"


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 421 for another host. For actions, answer 403 to pages of other sites and 415 without JSON."""
    if not permitted(request.headers.get("Host", ""), ()):
        return _refused(HOST, HTTPStatus.MISDIRECTED_REQUEST)
    if (request.method, request.path) not in ACTIONS:
        return await handler(request)
    if is_of_another_site(request):
        return _refused(ELSEWHERE, HTTPStatus.FORBIDDEN)
    if request.method != "GET" and request.content_type != JSON:
        refused = _refused(CONTENT_TYPE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        refused.headers["Accept"] = JSON  # RFC 9110, 15.5.16
        return refused
    return await handler(request)


def _refused(sentence: str, status: HTTPStatus) -> web.Response:
    return web.json_response({"error": sentence}, status=status)
