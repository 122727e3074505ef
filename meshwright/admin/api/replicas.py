"""The API of a server among several: routes and shapes with replicas, and answers over all servers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from aiohttp import web

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.shape import (
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    Shape,
    listed,
    maybe,
    noted,
    one_of,
    record,
)
from meshwright.admin.api.table import PREFIX, Parameter, Route
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.mesh.traffic import window_seconds
from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas.view import PARAMETER, Query, Scope, View, asked

_REPLICA: Final = noted(maybe(TEXT), "name of the server with this proxy; null for one that never connected")
_ANSWERED: Final = noted(TEXT, "name of the server in the parameter `replica`, else of the proxy's server")
_PARTIAL: Final = noted(
    listed(record({"replica": TEXT, "reason": TEXT})),
    "servers that are missing in this answer, because they did not answer in time",
)
_OF: Final = Parameter(PARAMETER, "only the answer of the server with this name", "meshwright-0-1a2b3c4d")

_ENTRIES: Final[Mapping[str, tuple[str, ...]]] = {
    "/proxies": ("proxies",),
    "/streams": ("streams",),
    "/proxies/{name}/pushes": ("pushes",),
    "/certificates": ("participants",),
    "/connectivity": ("callers", "called"),
}
"""Lists with an entry for each proxy, by path; each entry has the field `replica`."""

REPLICAS: Final = record(
    {
        "at": MOMENT,
        "own": noted(TEXT, "name of the server that answers"),
        "inputs_differ_seconds": noted(
            maybe(NUMBER), "seconds since when not all servers have read the same objects; null if all have"
        ),
        "leader": noted(maybe(TEXT), "name of the server that leads; null if none says so"),
        "replicas": listed(
            record(
                {
                    "replica": noted(TEXT, "name of the server; a restarted server has another one"),
                    "version": TEXT,
                    "since": noted(maybe(MOMENT), "start of the server; null if unknown"),
                    "address": noted(maybe(TEXT), "address at which other servers ask; null for none"),
                    "state": one_of("ready", "starting", "stopping", "unknown"),
                    "leads": FLAG,
                    "proxies": noted(WHOLE, "number of connected proxies"),
                    "fair_share": noted(
                        maybe(NUMBER),
                        "proxies divided by the ready servers; null for a server that is not ready",
                    ),
                    "store_age_seconds": noted(
                        maybe(NUMBER), "seconds since the last answer of the shared store; null if unknown"
                    ),
                    "inputs": noted(
                        maybe(TEXT),
                        "number and digest of the objects that the server has read; null if unknown",
                    ),
                    "differing_settings": noted(
                        listed(TEXT), "settings with another value than at the server that answers"
                    ),
                }
            )
        ),
    }
)


async def _replicas(api: Api, _request: web.Request) -> Document:
    if api.replicas is None:
        raise web.HTTPNotFound(reason="this server is the only one of its mesh")
    return await api.replicas.replicas()


def routes_of_all(routes: Iterable[Route]) -> tuple[Route, ...]:
    """Return the routes of a server among several."""
    one = Route("/replicas", "the servers of the mesh", _replicas, REPLICAS)
    return tuple(map(_with_replicas, (*routes, one)))


def _with_replicas(route: Route) -> Route:
    """Return a route with the parameter `replica`, and with the fields `replica` and `partial`."""
    shape = route.shape
    for name in _ENTRIES.get(route.path, ()):
        shape = _with_replica(shape, name)
    shape = _extended(shape, {"replica": _ANSWERED, "partial": _PARTIAL})
    return replace(route, shape=shape, parameters=(*route.parameters, _OF))


def _with_replica(shape: Shape, name: str) -> Shape:
    """Return the shape of a document whose list `name` has the field `replica` in each entry."""
    fields = shape["properties"]
    entries = fields[name] if isinstance(fields, dict) else None
    if (
        not isinstance(fields, dict)
        or not isinstance(entries, dict)
        or not isinstance(entries["items"], dict)
    ):
        raise TypeError(f"{name} is not a list of objects")
    items = _extended(entries["items"], {"replica": _REPLICA})
    return shape | {"properties": fields | {name: entries | {"items": items}}}


def _extended(shape: Shape, fields: Mapping[str, Shape]) -> Shape:
    known = shape["properties"]
    if not isinstance(known, dict):
        raise TypeError("the shape is not an object")
    return shape | {"properties": {**known, **fields}}


async def answer_of_all(api: Api, route: Route, request: web.Request) -> Document:
    """Return the answer over all servers, or of the one in the query. Raises the errors of the route."""
    if api.replicas is None:
        raise TypeError("the server is the only one")
    request, query, only = asked(request)

    async def compute(reading: MeshReading) -> Document:
        return await route.answer(replace(api, reading=reading), request)

    def path_of(name: str) -> tuple[str, Query]:
        return PREFIX + route.path.replace("{name}", name), query

    is_of_one = "{name}" in route.path
    view = View(
        route.scope,
        request.rel_url.raw_path,
        query,
        compute,
        request.match_info["name"] if is_of_one else request.query.get("proxy"),
        path_of if is_of_one else None,
        window_seconds(request.query, api.reading.traffic()) if route.scope is Scope.TRAFFIC else 0.0,
    )
    return await api.replicas.answer(view, only)
