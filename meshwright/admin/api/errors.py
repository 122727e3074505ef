"""JSON error answers for unknown paths and methods below `/api/v1`."""

from aiohttp import web
from aiohttp.typedefs import Handler

from meshwright.admin.api.table import PREFIX
from meshwright.admin.html.style import SECURITY_HEADERS


@web.middleware
async def in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer unknown paths and methods of the API with a JSON error, whatever the client accepts.

    For an unsupported method, `Allow` names the supported ones (RFC 9110, 15.5.6). OPTIONS is unsupported
    too, which the RFC permits (9.1).
    """
    # Other paths are pages, and `Site.framed` renders their errors.
    if request.path != PREFIX and not request.path.startswith(f"{PREFIX}/"):
        return await handler(request)
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as error:
        allowed = sorted(error.allowed_methods)
        sentence = f"{request.path} does not support {request.method[:20]}: use {' or '.join(allowed)}"
        response = _error(sentence, error.status)
        response.headers["Allow"] = ", ".join(allowed)
        return response
    except web.HTTPNotFound as error:
        # The command line compares this text: it recognises a server without the path by it.
        # Commands of other versions recognise a missing path by this text (`meshwright.cli.socket.client`).
        return _error(f"there is nothing at {request.path}", error.status)
    except web.HTTPError as error:
        return _error(f"{request.path}: {error.reason}", error.status)


def _error(sentence: str, status: int) -> web.Response:
    return web.json_response({"error": sentence}, status=status, headers=SECURITY_HEADERS)
