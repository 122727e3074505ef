"""The table of the JSON API: paths, their parameters, what they show, and what answers them."""

from functools import partial
from http import HTTPStatus
from typing import Final

from aiohttp import web

from meshwright.admin.api import calls, mesh, proxies, shapes
from meshwright.admin.api import trial as trying
from meshwright.admin.api.errors import in_json
from meshwright.admin.api.events import Events
from meshwright.admin.api.mesh import Api
from meshwright.admin.api.openapi import EVENTS, TRY, described
from meshwright.admin.api.shape import Shape, fitted_document
from meshwright.admin.api.statistics import STAT, TOPOLOGY
from meshwright.admin.api.table import PREFIX, Parameter, Route
from meshwright.admin.html.style import SECURITY_HEADERS
from meshwright.admin.http.json_responses import answered
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.mesh.topology import topology
from meshwright.admin.pages.mesh.traffic import LEAST_SECONDS, MOST_SECONDS, stat
from meshwright.admin.proxy_names import NothingToShow
from meshwright.traffic.statistics import RowKind


async def _stat(of: RowKind, api: Api, request: web.Request) -> Document:
    return await stat(api.reading, of, request.query, api.clock())


async def _topology(api: Api, request: web.Request) -> Document:
    return await topology(api.reading, request.query, api.clock())


_SERVICE: Final = "namespace/service"
_LINE: Final = '{"start_time": "2026-01-02T03:04:05Z", "local_address": "10.0.0.1:80"}'
_SECONDS: Final[Shape] = {
    "type": "number",
    "minimum": LEAST_SECONDS,
    "maximum": MOST_SECONDS,
}
_BY: Final[Shape] = {"type": "string", "enum": ["service", "namespace"]}
_PAGE: Final = (
    Parameter("limit", "so many at most; all by default", 500, schema={"type": "integer", "minimum": 1}),
    Parameter("offset", "from this one on; the first is 0", 0, schema={"type": "integer", "minimum": 0}),
)
_STAT: Final = (
    Parameter("window", "over the last so many seconds", 300, schema=_SECONDS),
    Parameter("namespace", "rows with an end in it", "shop"),
    Parameter("from", f"who calls, {_SERVICE}", "shop/cart"),
    Parameter("to", f"who is called, {_SERVICE}", "shop/pay"),
    Parameter("service", f"either, {_SERVICE}", "shop/pay"),
    *_PAGE,
)
_TOPOLOGY: Final = (
    Parameter("service", f"it and its neighbours, {_SERVICE}", "shop/pay"),
    Parameter("namespace", "its services and their neighbours", "shop"),
    Parameter("by", "service or namespace; of more than 300 the latter", "service", schema=_BY),
    Parameter("window", "over the last so many seconds", 300, schema=_SECONDS),
    *_PAGE,
)
_REQUEST: Final = (
    Parameter("method", "GET by default", "GET"),
    Parameter("path", "/ by default", "/books"),
    Parameter("header", "name: value", "x-kind: book", many=True),
)
_EXPLAIN: Final = (
    Parameter("from", "namespace/service account, or an IP address outside the mesh", "shop/buyer"),
    Parameter("to", "namespace/service:port, or an address outside the mesh", "shop/store:80"),
    *_REQUEST,
    Parameter("line", "of a sidecar's access log, in the place of what it says", _LINE),
)
_CALL: Final = (
    Parameter("from", "namespace/service account", "shop/buyer", True),
    Parameter("to", "namespace/service, with :port where it has several", "shop/store:80", True),
    *_REQUEST,
)
_HOSTS: Final = (Parameter("namespace", "whose short names are wanted", "shop", True),)
_STREAMS: Final = (Parameter("proxy", "its own alone, as /proxies/{name} has it", "store-1"),)
_OBJECT: Final = (
    Parameter("object", "this one alone, kind and namespace/name", "TrafficTarget shop/buyers"),
)

ROUTES: Final = (
    Route("/overview", "how all is, in a verdict a part", mesh.overview, shapes.OVERVIEW),
    Route("/proxies", "every proxy, in step or why not", mesh.all_proxies, proxies.PROXIES),
    Route("/proxies/{name}", "one proxy, and what it was told", mesh.one_proxy, proxies.PROXY),
    Route("/proxies/{name}/pushes", "what it was sent last, and why", mesh.pushes, proxies.PUSHES),
    Route(
        "/proxies/{name}/configuration",
        "what it is served, in its own words",
        mesh.configuration,
        proxies.CONFIGURATION,
    ),
    Route("/streams", "open streams, by type", mesh.all_streams, proxies.STREAMS, _STREAMS),
    Route("/published", "versions of what each proxy is served", mesh.all_published, proxies.PUBLISHED),
    Route("/certificates", "certificates issued", mesh.all_certificates, shapes.CERTIFICATES),
    Route("/policies", "objects in force, and problems", mesh.policies, shapes.POLICIES, _OBJECT),
    Route("/explain", "why a call may pass or not", mesh.explain, calls.EXPLAINED, _EXPLAIN),
    Route(
        "/connectivity",
        "how it stands with all that a call goes by",
        mesh.connectivity,
        calls.CONNECTIVITY,
        _CALL,
    ),
    Route("/sources", "sources: how fresh, what they hold", mesh.all_sources, shapes.SOURCES),
    Route("/hosts", "the lines of a hosts file", mesh.hosts, shapes.HOSTS, _HOSTS),
    Route("/config", "MeshConfig and settings", mesh.config, shapes.CONFIG),
    Route("/loop", "when the event loop was held, and by what", mesh.loop, shapes.LOOP),
    Route("/topology", "who calls whom, allowed and seen", _topology, TOPOLOGY, _TOPOLOGY),
    *(Route(f"/stat/{of.value}", f"how {of.value} fare", partial(_stat, of), STAT, _STAT) for of in RowKind),
)


def add_api(app: web.Application, api: Api) -> None:
    """Add the API to an application, whose guard is its own; before it starts."""
    app.middlewares.append(in_json)
    for each in ROUTES:
        app.router.add_get(PREFIX + each.path, partial(_answer, api, each))
    events = Events(api.reading, api.clock)
    app.router.add_get(PREFIX + EVENTS, events.answer)
    app.on_shutdown.append(events.end)
    app.router.add_post(PREFIX + TRY, partial(trying.answer, api))
    app.router.add_get(PREFIX, _index)
    app.router.add_get(f"{PREFIX}/openapi.json", _openapi)


async def _answer(api: Api, route: Route, request: web.Request) -> web.Response:
    now = api.clock()
    try:
        _known(route, request)
        document = mesh.stamped(await route.answer(api, request), now)
        # There may be thousands of proxies: fields are chosen where they hold nobody up.
        return await answered(lambda: fitted_document(route.shape, document), SECURITY_HEADERS)
    except NothingToShow as error:
        return await _json({"error": str(error)}, HTTPStatus.NOT_FOUND)
    except (web.HTTPBadRequest, web.HTTPNotFound) as error:
        return await _json({"error": error.reason}, error.status)
    except Exception:
        request.app.logger.exception("API request failed: %s", request.path)
        said = f"{request.path} failed with an internal error: see the server log"
        return await _json({"error": said}, HTTPStatus.INTERNAL_SERVER_ERROR)


def _known(route: Route, request: web.Request) -> None:
    """Raise web.HTTPBadRequest for a parameter that there is not, or that is there twice and may not."""
    names = [each.name for each in route.parameters]
    if unknown := sorted(request.query.keys() - set(names)):
        there = f"must be one of {', '.join(names)}" if names else "this path has no parameters"
        raise web.HTTPBadRequest(reason=f"unknown parameter {unknown[0][:40]!r}: {there}")
    for each in route.parameters:
        if not each.many and len(request.query.getall(each.name, [])) > 1:
            raise web.HTTPBadRequest(reason=f"{each.name} must be given only once")


async def _index(_request: web.Request) -> web.Response:
    listed = {PREFIX + each.path: each.shows for each in ROUTES}
    return await _json(
        {
            **listed,
            PREFIX + EVENTS: "what changes, as server-sent events",
            PREFIX + TRY: "POST: whom manifests would concern",
        }
    )


async def _openapi(_request: web.Request) -> web.Response:
    return await _json(described(ROUTES))


async def _json(document: Document, status: int = HTTPStatus.OK) -> web.Response:
    return await answered(lambda: document, SECURITY_HEADERS, status)
