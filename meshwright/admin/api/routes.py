"""Table of the JSON API: paths, parameters, shapes and handlers."""

from collections.abc import Awaitable, Callable, Iterable
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
from meshwright.admin.replicas.view import Scope
from meshwright.traffic.statistics import RowKind


async def _stat(row_kind: RowKind, api: Api, request: web.Request) -> Document:
    return await stat(api.reading, row_kind, request.query, api.clock())


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
    Parameter(
        "limit", "largest number of rows; all rows by default", 500, schema={"type": "integer", "minimum": 1}
    ),
    Parameter("offset", "number of the first row, from 0", 0, schema={"type": "integer", "minimum": 0}),
)
_STAT: Final = (
    Parameter("window", "seconds before now that the rates cover", 300, schema=_SECONDS),
    Parameter("namespace", "only rows whose source or destination is in the namespace", "shop"),
    Parameter("from", f"source of the requests, {_SERVICE}", "shop/cart"),
    Parameter("to", f"destination of the requests, {_SERVICE}", "shop/pay"),
    Parameter("service", f"source or destination, {_SERVICE}", "shop/pay"),
    *_PAGE,
)
_TOPOLOGY: Final = (
    Parameter("service", f"only the service and its neighbours, {_SERVICE}", "shop/pay"),
    Parameter("namespace", "only the services of the namespace and their neighbours", "shop"),
    Parameter(
        "by",
        "unit of a node: service, or namespace (default for more than 300 services)",
        "service",
        schema=_BY,
    ),
    Parameter("window", "seconds before now that the rates cover", 300, schema=_SECONDS),
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
    Parameter(
        "gateway",
        "namespace/gateway:port for a request from outside, instead of from and to",
        "shop/edge:443",
    ),
    Parameter("host", "host of a request to a gateway", "shop.example"),
    Parameter("line", "line of a sidecar's or gateway's access log, instead of the other parameters", _LINE),
)
_CALL: Final = (
    Parameter("from", "namespace/service account", "shop/buyer", True),
    Parameter("to", "namespace/service, with :port for a service with several ports", "shop/store:80", True),
    *_REQUEST,
)
_HOSTS: Final = (Parameter("namespace", "namespace whose services get short names", "shop", True),)
_STREAMS: Final = (
    Parameter("proxy", "only the streams of this proxy, named as in /proxies/{name}", "store-1"),
)
_OBJECT: Final = (
    Parameter("object", "only this object, as kind and namespace/name", "TrafficTarget shop/buyers"),
)

ROUTES: Final = (
    Route("/overview", "state of each part of the mesh", mesh.overview, shapes.OVERVIEW, scope=Scope.FACTS),
    Route(
        "/proxies",
        "every proxy, with the reason if its configuration is outdated",
        mesh.all_proxies,
        proxies.PROXIES,
        scope=Scope.FACTS,
    ),
    Route(
        "/proxies/{name}",
        "one proxy and its configuration in words",
        mesh.one_proxy,
        proxies.PROXY,
        scope=Scope.PROXY,
    ),
    Route(
        "/proxies/{name}/pushes",
        "last responses to a proxy, with their causes",
        mesh.pushes,
        proxies.PUSHES,
        scope=Scope.PUSHES,
    ),
    Route(
        "/proxies/{name}/configuration",
        "configuration that is served to a proxy, in the form of the proxy",
        mesh.configuration,
        proxies.CONFIGURATION,
        scope=Scope.PROXY,
    ),
    Route(
        "/streams",
        "open streams, by type",
        mesh.all_streams,
        proxies.STREAMS,
        _STREAMS,
        scope=Scope.STREAMS,
    ),
    Route(
        "/published",
        "versions of the resources that are served to each proxy",
        mesh.all_published,
        proxies.PUBLISHED,
        scope=Scope.PUBLISHED,
    ),
    Route(
        "/certificates",
        "issued certificates",
        mesh.all_certificates,
        shapes.CERTIFICATES,
        scope=Scope.FACTS,
    ),
    Route(
        "/policies",
        "objects in force and problems",
        mesh.policies,
        shapes.POLICIES,
        _OBJECT,
        scope=Scope.FACTS,
    ),
    Route(
        "/explain",
        "explanation of a request: allowed or not, and why",
        mesh.explain,
        calls.EXPLAINED,
        _EXPLAIN,
        scope=Scope.FACTS,
    ),
    Route(
        "/connectivity",
        "state of every part that a request passes",
        mesh.connectivity,
        calls.CONNECTIVITY,
        _CALL,
        scope=Scope.CONNECTIVITY,
    ),
    Route("/sources", "sources: age and objects", mesh.all_sources, shapes.SOURCES),
    Route("/hosts", "lines of a hosts file", mesh.hosts, shapes.HOSTS, _HOSTS),
    Route("/config", "MeshConfig and settings", mesh.config, shapes.CONFIG),
    Route(
        "/loop", "last moments at which the event loop was blocked, with the cause", mesh.loop, shapes.LOOP
    ),
    Route(
        "/topology",
        "graph of allowed and observed traffic",
        _topology,
        TOPOLOGY,
        _TOPOLOGY,
        scope=Scope.TRAFFIC,
    ),
    *(
        Route(
            f"/stat/{of.value}",
            f"request and connection statistics of {of.value}",
            partial(_stat, of),
            STAT,
            _STAT,
            scope=Scope.TRAFFIC,
        )
        for of in RowKind
    ),
)


def add_api(app: web.Application, api: Api) -> None:
    """Add the API to an application before the application starts.

    The application needs a guard against foreign hosts (`http.guard`).
    """
    app.middlewares.append(in_json)
    routes, compute = ROUTES, _own_answer
    if api.replicas is not None:
        # Imported only here, because a single server does not need the memory.
        from meshwright.admin.api.replicas import answer_of_all, routes_of_all

        routes, compute = routes_of_all(ROUTES), answer_of_all
    for route in routes:
        app.router.add_get(PREFIX + route.path, partial(_answer, compute, api, route))
    events = Events(api.reading, api.clock, api.replicas)
    app.router.add_get(PREFIX + EVENTS, events.answer)
    # An open event stream would otherwise delay the shutdown.
    app.on_shutdown.append(events.end)
    app.router.add_post(PREFIX + TRY, partial(trying.answer, api))
    app.router.add_get(PREFIX, partial(_index, routes))
    app.router.add_get(f"{PREFIX}/openapi.json", partial(_openapi, routes))


Compute = Callable[[Api, Route, web.Request], Awaitable[Document]]
"""Function that returns the answer at a path."""


async def _own_answer(api: Api, route: Route, request: web.Request) -> Document:
    return await route.answer(api, request)


async def _answer(compute: Compute, api: Api, route: Route, request: web.Request) -> web.Response:
    now = api.clock()
    try:
        _known(route, request)
        document = mesh.stamped(await compute(api, route, request), now)
        # Shaping thousands of proxies takes long, so this runs in a thread and not on the event loop.
        return await answered(lambda: fitted_document(route.shape, document), SECURITY_HEADERS)
    except NothingToShow as error:
        return await _json({"error": str(error)}, HTTPStatus.NOT_FOUND)
    except (web.HTTPBadRequest, web.HTTPNotFound, web.HTTPBadGateway) as error:
        return await _json({"error": error.reason}, error.status)
    except Exception:
        request.app.logger.exception("API request failed: %s", request.path)
        text = f"{request.path} failed with an internal error: see the server log"
        return await _json({"error": text}, HTTPStatus.INTERNAL_SERVER_ERROR)


def _known(route: Route, request: web.Request) -> None:
    """Raise web.HTTPBadRequest for a query parameter unknown to the route, or wrongly repeated."""
    names = [parameter.name for parameter in route.parameters]
    if unknown := sorted(request.query.keys() - set(names)):
        there = f"must be one of {', '.join(names)}" if names else "this path does not take parameters"
        # A misspelt filter would else be ignored, and the answer would show everything.
        raise web.HTTPBadRequest(reason=f"unknown parameter {unknown[0][:40]!r}: {there}")
    for parameter in route.parameters:
        if not parameter.many and len(request.query.getall(parameter.name, [])) > 1:
            raise web.HTTPBadRequest(reason=f"{parameter.name} must be given only once")


async def _index(routes: Iterable[Route], _request: web.Request) -> web.Response:
    listed = {PREFIX + route.path: route.shows for route in routes}
    return await _json(
        {
            **listed,
            PREFIX + EVENTS: "changes of the mesh, as server-sent events",
            PREFIX + TRY: "POST: proxies that manifests would affect",
        }
    )


async def _openapi(routes: Iterable[Route], _request: web.Request) -> web.Response:
    return await _json(described(routes))


async def _json(document: Document, status: int = HTTPStatus.OK) -> web.Response:
    return await answered(lambda: document, SECURITY_HEADERS, status)
