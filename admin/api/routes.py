"""The table of the JSON API: paths, what they show, and what answers them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Final

from aiohttp import web

from admin.api.stat import stat
from admin.html.style import SECURITY_HEADERS
from admin.http.answering import answered
from admin.pages.jsonable import Document
from admin.pages.naming import NotShown
from admin.reading import MeshReading
from observed.standing import Of

PREFIX: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Api:
    """What answers are made of."""

    reading: MeshReading
    clock: Callable[[], datetime]


Answer = Callable[[Api, web.Request], Awaitable[Document]]


@dataclass(frozen=True, slots=True)
class Route:
    """A path below PREFIX, what it shows, and what answers it: raises NotShown, or web.HTTPBadRequest."""

    path: str
    shows: str
    answer: Answer


async def _stat(of: Of, api: Api, request: web.Request) -> Document:
    return await stat(api.reading, of, request.query, api.clock())


ROUTES: Final = tuple(
    Route(
        f"/stat/{of.value}",
        f"how {of.value} fare; ?window=&namespace=&from=&to=&service=",
        partial(_stat, of),
    )
    for of in Of
)


def add_api(app: web.Application, api: Api) -> None:
    """Add the API to an application, whose guard is its own."""
    for each in ROUTES:
        app.router.add_get(PREFIX + each.path, partial(_answer, api, each))
    app.router.add_get(PREFIX, _index)
    app.router.add_get(PREFIX + "/{path:.*}", _nothing)


async def _answer(api: Api, route: Route, request: web.Request) -> web.Response:
    try:
        document = await route.answer(api, request)
    except NotShown as error:
        return await _json({"error": str(error)}, HTTPStatus.NOT_FOUND)
    except web.HTTPBadRequest as error:
        return await _json({"error": error.reason}, HTTPStatus.BAD_REQUEST)
    return await _json(document)


async def _index(_request: web.Request) -> web.Response:
    return await _json({PREFIX + each.path: each.shows for each in ROUTES})


async def _nothing(request: web.Request) -> web.Response:
    return await _json({"error": f"there is nothing at {request.path}"}, HTTPStatus.NOT_FOUND)


async def _json(document: Document, status: int = HTTPStatus.OK) -> web.Response:
    return await answered(lambda: document, SECURITY_HEADERS, status)
