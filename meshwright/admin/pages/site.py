"""Debug pages over HTTP: JSON for programs, HTML for browsers, and errors in the same two forms.

A request passes two middlewares: `framed` renders every error, and the guard refuses unknown hosts. Then
`Site.page` computes the document of the page, and sends JSON or HTML by the `Accept` header. No page changes
anything: a submitted form (`/debug/try`) is computed on a copy of the mesh.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from meshwright.admin.html.frame import SCRIPT_PATH, PageRequest, Place
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.renderer import Entry, drawn, failed, index, named
from meshwright.admin.html.style import SECURITY_HEADERS
from meshwright.admin.html.tones import Verdict
from meshwright.admin.http.accept import prefers_html
from meshwright.admin.http.guard import NOT_SERVED, is_of_another_site, known_hosts_only
from meshwright.admin.http.json_responses import answered
from meshwright.admin.jsonable import Document, is_handful, jsonable
from meshwright.admin.pages.trial_runner import ELSEWHERE
from meshwright.admin.proxy_names import NothingToShow

INDEX: Final = "/debug"
_PLAIN: Final = PageLook()
# Read on import, so that a request never waits for the disk.
SCRIPT: Final = (files("meshwright.admin.html") / "live.js").read_text("utf-8")
Answer = Callable[[web.Request], Awaitable[Document]]


class FormRefused(Exception):
    """Error for an invalid submitted form: the page shows `document`, with the HTTP status `status`."""

    def __init__(self, document: Document, status: HTTPStatus) -> None:
        super().__init__(status)
        self.document = document
        self.status = status


@dataclass(frozen=True, slots=True)
class Page:
    """A path with its purpose, handler and look.

    `glance` returns the verdict for the index, and needs less time than the whole page.
    """

    path: str
    shows: str
    answer: Answer
    look: PageLook = _PLAIN
    glance: Callable[[], Awaitable[Verdict]] | None = None
    posted: Answer | None = None
    """Function that answers a submitted form, or raises FormRefused. It has no side effects."""

    @property
    def place(self) -> Place:
        """The page as an entry of the navigation."""
        return Place(self.path, self.look.label or named(self.path))

    async def entry(self) -> Entry:
        """Return the page as an entry of the index."""
        verdict = None if self.glance is None else await self.glance()
        return Entry(self.place, self.look.shows or self.shows, verdict)


@dataclass(frozen=True, slots=True)
class Site:
    """All debug pages; those of `further` may change at run time. `clock` returns the time of day."""

    first: tuple[Page, ...]
    further: Callable[[], Iterable[Page]]
    clock: Callable[[], datetime]

    async def index(self, request: web.Request) -> web.Response:
        """Answer with the list of pages and their purposes."""
        listed = self._listed()
        if not prefers_html(request):
            return await _json({page.path: page.shows for page in listed})
        entries = [await page.entry() for page in listed]
        return _html(index(entries, self._page_request(request), self._places()))

    async def page(self, request: web.Request) -> web.Response:
        """Answer with a page, or with an error in one sentence."""
        result = next((item for item in self._listed() if item.path == request.path), None)
        request = _without_empty(request) if prefers_html(request) else request
        return await self._shown(request, result, None if result is None else result.answer)

    async def posted(self, answer: Answer, page: Page, request: web.Request) -> web.Response:
        """Answer a form submitted by one of our own pages or by a program; other sites are refused."""
        if is_of_another_site(request):
            return await self._failed(request, page.look, ELSEWHERE, HTTPStatus.FORBIDDEN)
        return await self._shown(request, page, answer)

    async def _shown(
        self,
        request: web.Request,
        result: Page | None,
        answer: Answer | None,
    ) -> web.Response:
        look, status = _PLAIN if result is None else result.look, HTTPStatus.OK
        try:
            if answer is None:
                raise NothingToShow(f"there is no page {request.path}")
            document = await answer(request)
        except NothingToShow as error:
            return await self._failed(request, look, str(error), HTTPStatus.NOT_FOUND)
        except (web.HTTPClientError, web.HTTPBadGateway) as error:
            return await self._failed(request, look, error.reason, HTTPStatus(error.status))
        except FormRefused as error:
            document, status = error.document, error.status
        if not prefers_html(request):
            return await _json(document, status)
        # In a thread, because the page of a large mesh is large.
        page = await asyncio.to_thread(drawn, look, document, self._page_request(request), self._places())
        return _html(page, status)

    def framed(self) -> Middleware:
        """Return the middleware that renders every error; browsers get it in the frame of the pages."""

        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                response = await handler(request)
            # aiohttp raises redirects too, which are not errors.
            except web.HTTPRedirection:
                raise
            except web.HTTPException as error:
                return await self._not_here(request, error)
            except Exception:
                request.app.logger.exception("debug page failed: %s", request.path)
                sentence = f"{request.path} failed with an internal error: see the server log"
                return await self._failed(
                    request, PageLook("Failed"), sentence, HTTPStatus.INTERNAL_SERVER_ERROR
                )
            if response.status == HTTPStatus.MISDIRECTED_REQUEST and prefers_html(request):
                return await self._failed(
                    request, PageLook("Unknown host"), NOT_SERVED, HTTPStatus.MISDIRECTED_REQUEST
                )
            return response

        return middleware

    async def _not_here(self, request: web.Request, error: web.HTTPException) -> web.Response:
        """Answer an unknown path or method; an unknown method gets the list of supported methods.

        Every page supports GET, so a path without GET is unknown for other methods too, and the answer is
        404.
        """
        allowed = error.allowed_methods if isinstance(error, web.HTTPMethodNotAllowed) else ()
        if allowed and request.path.startswith(f"{INDEX}/") and not self._is_there(request.path):
            sentence = f"there is no page {request.path}"
            return await self._failed(request, PageLook("Not found"), sentence, HTTPStatus.NOT_FOUND)
        sentence = f"{request.path}: {error.reason}"
        response = await self._failed(request, PageLook("Error"), sentence, HTTPStatus(error.status))
        if allowed:
            response.headers["Allow"] = ", ".join(sorted(allowed))  # RFC 9110, 15.5.6
        return response

    def _is_there(self, path: str) -> bool:
        return path in (f"{INDEX}/", SCRIPT_PATH, *(page.path for page in self._listed()))

    def _listed(self) -> tuple[Page, ...]:
        return (*self.first, *self.further())

    def _places(self) -> tuple[Place, ...]:
        return (Place(INDEX, "Overview"), *(page.place for page in self._listed()))

    def _page_request(self, request: web.Request) -> PageRequest:
        return PageRequest(request.path, tuple(request.query.items()), str(jsonable(self.clock())))

    async def _failed(
        self, request: web.Request, look: PageLook, sentence: str, status: HTTPStatus
    ) -> web.Response:
        if not prefers_html(request):
            return await _json({"error": sentence}, status)
        return _html(failed(look, sentence, self._page_request(request), self._places()), status)


def add_pages(
    app: web.Application,
    all_pages: Iterable[Page],
    clock: Callable[[], datetime],
    further: Callable[[], Iterable[Page]] = tuple,
) -> None:
    """Add the pages and their index `/debug` to an application; `further` pages may change at run time."""
    _route(app, Site(tuple(all_pages), further, clock))


def application(
    all_pages: Iterable[Page],
    hosts: Iterable[str],
    clock: Callable[[], datetime],
    further: Callable[[], Iterable[Page]] = tuple,
) -> web.Application:
    """Build the debug server, which answers known hosts only and changes nothing."""
    site = Site(tuple(all_pages), further, clock)
    # The outermost middleware is first: `framed` also renders the refusal of an unknown host.
    app = web.Application(middlewares=[site.framed(), known_hosts_only(hosts)])
    _route(app, site)
    return app


def _route(app: web.Application, site: Site) -> None:
    async def to_index(_request: web.Request) -> web.Response:
        raise web.HTTPFound(INDEX)

    app.router.add_get("/", to_index)
    app.router.add_get(INDEX, site.index)
    app.router.add_get(f"{INDEX}/", site.index)
    app.router.add_get(SCRIPT_PATH, script)
    app.router.add_get(f"{INDEX}/{{path:.+}}", site.page)
    for page in site.first:
        if page.posted is not None:
            app.router.add_post(page.path, partial(site.posted, page.posted, page))


async def script(_request: web.Request) -> web.Response:
    """Answer with the JavaScript of the debug pages."""
    return web.Response(text=SCRIPT, content_type="text/javascript", headers=SECURITY_HEADERS)


def _without_empty(request: web.Request) -> web.Request:
    """Return a request without empty parameters, which browsers send for empty fields of a form."""
    given = [(name, value) for name, value in request.query.items() if value]
    return request.clone(rel_url=request.rel_url.with_query(given))


async def _json(value: Document, status: int = HTTPStatus.OK) -> web.Response:
    if is_handful(value):  # without a thread, so that the page works even if all threads wait for a disk
        return web.json_response(value, headers=SECURITY_HEADERS, status=status)
    return await answered(lambda: value, SECURITY_HEADERS, status)


def _html(page: str, status: int = HTTPStatus.OK) -> web.Response:
    return web.Response(text=page, content_type="text/html", headers=SECURITY_HEADERS, status=status)
