"""`POST /api/v1/try`: proxies affected by manifests; requests from pages of other sites are refused."""

import json
from http import HTTPStatus
from typing import Final

from aiohttp import web

from meshwright.admin.api.mesh import Api, stamped
from meshwright.admin.api.shape import (
    MOMENT,
    TEXT,
    WHOLE,
    Shape,
    fitted_document,
    listed,
    noted,
    one_of,
    record,
)
from meshwright.admin.api.shapes import PROBLEM
from meshwright.admin.html.style import SECURITY_HEADERS
from meshwright.admin.http.accept import JSON
from meshwright.admin.http.guard import is_of_another_site
from meshwright.admin.http.json_responses import answered
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.trial_runner import BYTES, ELSEWHERE, TrialUnavailable

_CHANGE: Final = one_of("added", "removed", "changed")
_RESOURCE: Final = record({"change": _CHANGE, "type": TEXT, "name": TEXT, "diff": listed(TEXT)})
TRIED: Final[Shape] = record(
    {
        "at": MOMENT,
        "objects": noted(WHOLE, "number of readable objects"),
        "problems": noted(listed(PROBLEM), "new problems"),
        "changed": noted(
            listed(record({"proxies": listed(TEXT), "resources": listed(_RESOURCE)})),
            "proxies whose configuration would change, grouped by equal changes",
        ),
        "more": noted(WHOLE, "number of further groups"),
        "unchanged": noted(WHOLE, "number of proxies without a change"),
        "new": noted(listed(TEXT), "new proxies"),
        "gone": noted(listed(TEXT), "proxies that would become unknown"),
        "failed": noted(
            listed(record({"error": TEXT, "proxies": listed(TEXT)})),
            "proxies whose configuration could not be computed; they would keep the present one",
        ),
    }
)
MOST_ESCAPED: Final = 6
r"""Maximum bytes of JSON for one byte of a manifest, reached by an escape such as `\u0041`."""
BODY: Final[Shape] = record({"manifests": noted(TEXT, "manifests in YAML, as for kubectl apply")})


async def answer(api: Api, request: web.Request) -> web.Response:
    """Answer with the proxies and resources affected by the posted manifests. No manifest is applied."""
    if is_of_another_site(request):
        return await _error(ELSEWHERE, HTTPStatus.FORBIDDEN)
    # For this type a browser asks first (CORS preflight), and this server never agrees.
    if request.content_type != JSON:
        refused = await _error(f"the Content-Type header must be {JSON}", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        refused.headers["Accept"] = JSON  # RFC 9110, 15.5.16
        return refused
    try:
        result = stamped(await api.trying.tried(_manifests(await _body(request))), api.clock())
        return await answered(lambda: fitted_document(TRIED, result), SECURITY_HEADERS)
    except ValueError as error:
        return await _error(str(error), HTTPStatus.BAD_REQUEST)
    except TrialUnavailable as error:
        return await _error(str(error), error.status)
    except Exception:
        request.app.logger.exception("manifest trial failed")
        text = f"{request.path} failed with an internal error: see the server log"
        return await _error(text, HTTPStatus.INTERNAL_SERVER_ERROR)


async def _body(request: web.Request) -> bytes:
    """Return the body.

    Raises TrialUnavailable for a body that is too long even for fully escaped manifests.
    """
    result = bytearray()
    async for piece in request.content.iter_chunked(65536):
        result += piece
        # After each chunk, because Content-Length may be missing.
        if len(result) > MOST_ESCAPED * BYTES:
            sentence = f"the body is longer than {MOST_ESCAPED * BYTES} bytes"
            raise TrialUnavailable(sentence, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return bytes(result)


def _manifests(body: bytes) -> str:
    """Return the manifests in a JSON body. Raises ValueError; the message names the valid form."""
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        response = None
    match response:
        case {"manifests": str() as manifests}:
            # JSON allows unpaired surrogates, but the manifests must be encodable as UTF-8.
            if any("\ud800" <= manifest <= "\udfff" for manifest in manifests):
                raise ValueError("manifests must be valid Unicode text: an escape is an unpaired surrogate")
            return manifests
        case _:
            raise ValueError('the body must be a JSON object, for example {"manifests": "kind: Service ..."}')


async def _error(sentence: str, status: HTTPStatus) -> web.Response:
    document: Document = {"error": sentence}
    return await answered(lambda: document, SECURITY_HEADERS, status)
