"""Guard of the socket in the state directory, which may be forwarded to a port that browsers reach.

A browser cannot open a Unix socket. Who forwards it (`ssh -L`, `socat`) opens it to pages of other sites: by
requests that a page sends without being able to read the answer (CSRF), and by a name that a page had lead to
the forwarded port (DNS rebinding).
"""

from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from meshwright.admin.http.accept import JSON
from meshwright.admin.http.actions import ACTIONS
from meshwright.admin.http.guard import is_of_another_site, permitted

HOST: Final = "the Host must be localhost or a loopback address, as meshwright's own commands have it"
ELSEWHERE: Final = "a page of another site asks, and may change nothing here"
CONTENT_TYPE: Final = f"the Content-Type must be {JSON}"


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 421 for another host; of actions, 403 to a page of another site, and 415 for what is no JSON."""
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
