"""`POST /api/v1/try`: whom manifests would concern, asked by one at a time, and of no other site's page."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from admin.api.mesh import Api, stamped
from admin.api.shape import MOMENT, TEXT, WHOLE, Shape, fitted_document, listed, noted, one_of, record
from admin.api.shapes import PROBLEM
from admin.api.trial import Asked, TooLong, tried
from admin.html.style import SECURITY_HEADERS
from admin.http.answering import answered
from admin.pages.jsonable import Document

BYTES: Final = 256 * 1024
_CHANGE: Final = one_of("added", "removed", "changed")
_RESOURCE: Final = record({"change": _CHANGE, "type": TEXT, "name": TEXT, "diff": listed(TEXT)})
TRIED: Final[Shape] = record(
    {
        "at": MOMENT,
        "objects": noted(WHOLE, "how many could be read"),
        "problems": noted(listed(PROBLEM), "that would be new"),
        "changed": noted(
            listed(record({"proxies": listed(TEXT), "resources": listed(_RESOURCE)})),
            "proxies that would be served something else, those together whose change is the same",
        ),
        "more": noted(WHOLE, "how many more such sets there are"),
        "unchanged": noted(WHOLE, "how many proxies would not"),
        "new": noted(listed(TEXT), "proxies that would be known"),
        "gone": noted(listed(TEXT), "proxies that would not be known any more"),
        "failed": noted(
            listed(record({"error": TEXT, "proxies": listed(TEXT)})),
            "proxies for which nothing can be made, as things would be then: they would keep what they have",
        ),
    }
)
BODY: Final[Shape] = record({"manifests": noted(TEXT, "YAML, as kubectl apply has it")})


@dataclass(slots=True)
class Trying:
    """Tries one at a time."""

    api: Api
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer with what manifests would come to."""
        if _is_of_another_site(request):
            return await _error("a page of another site asks: that is not answered", 403)
        if request.content_type != "application/json":
            return await _error("the Content-Type must be application/json", 415)
        try:
            manifests = _manifests(await _body(request))
        except ValueError as error:
            return await _error(str(error), 400)
        view = self.api.reading.view()
        if view is None:
            return await _error("nothing has been read yet", 503)
        if self._one.locked():
            return await _error("something is being tried already: try again in a moment", 503)
        async with self._one:
            asked = Asked(view.settings, view.known(), manifests, self.api.read)
            try:
                found = stamped(await asyncio.to_thread(tried, asked), self.api.clock())
                return await answered(lambda: fitted_document(TRIED, found), SECURITY_HEADERS)
            except TooLong:
                return await _error("it takes too long; ask `meshwright diff`", 503)
            except Exception:
                request.app.logger.exception("manifests could not be tried")
                return await _error(f"{request.path} failed; the log of the server says why", 500)


def _is_of_another_site(request: web.Request) -> bool:
    """Say whether a browser asks for a page that is not ours."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    own = f"{request.scheme}://{request.headers.get('Host', '')}"
    return origin not in (None, own) or site not in (None, "same-origin")


async def _body(request: web.Request) -> bytes:
    """Return the body; raises ValueError for one that is too long."""
    found = bytearray()
    async for piece in request.content.iter_chunked(65536):
        found += piece
        if len(found) > BYTES:
            raise ValueError(f"the body has more than {BYTES} bytes")
    return bytes(found)


def _manifests(body: bytes) -> str:
    """Return the manifests of a body; raises ValueError, which says what would be right."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    match said:
        case {"manifests": str() as manifests}:
            return manifests
        case _:
            raise ValueError('the body must be such as {"manifests": "kind: Service ..."}')


async def _error(sentence: str, status: int) -> web.Response:
    document: Document = {"error": sentence}
    return await answered(lambda: document, SECURITY_HEADERS, status)
