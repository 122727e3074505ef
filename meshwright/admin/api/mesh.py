"""Answers of the JSON API, computed by the same functions as the debug pages."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from meshwright.admin.html.tones import Verdict, worst
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages import debug
from meshwright.admin.pages.handlers import Answers
from meshwright.admin.pages.mesh.certificates import certificates
from meshwright.admin.pages.mesh.published_resources import published
from meshwright.admin.pages.mesh.sources import sources
from meshwright.admin.pages.overview import Glances
from meshwright.admin.pages.proxies import proxy, streams
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.admin.proxy_names import find
from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas.view import AllReplicas


@dataclass(frozen=True, slots=True)
class Api:
    """Sources of the API's answers: the mesh, the time of day, and the runner of manifest trials.

    `replicas` are the servers of the mesh, None for the only one.
    """

    reading: MeshReading
    clock: Callable[[], datetime]
    trying: TrialRunner
    replicas: AllReplicas | None = None


async def overview(api: Api, _request: web.Request) -> Document:
    """Return the verdict of each part of the mesh, and the worst verdict."""
    glances = Glances(api.reading, api.clock)
    verdicts = {
        "sources": await glances.sources(),
        "policies": await glances.policies(),
        "proxies": await glances.proxies(),
        "certificates": await glances.certificates(),
    }
    tone = worst(verdict.tone for verdict in verdicts.values())
    # Of several equally bad parts, the order above decides.
    first = next(verdict for verdict in verdicts.values() if verdict.tone is tone)
    parts: list[Json] = [_part(name, verdict) for name, verdict in verdicts.items()]
    return {"verdict": tone.value, "sentence": first.sentence, "parts": parts}


def _part(name: str, verdict: Verdict) -> Document:
    return {
        "part": name,
        "path": f"/api/v1/{name}",
        "verdict": verdict.tone.value,
        "sentence": verdict.sentence,
    }


async def all_proxies(api: Api, _request: web.Request) -> Document:
    """Return every connected, expected and former proxy."""
    result = (await proxy.listed(api.reading, api.clock()))["proxies"]
    return {"proxies": _with_name(result, "name")}


async def one_proxy(api: Api, request: web.Request) -> Document:
    """Return one proxy with the mesh's description of its configuration. Raises NothingToShow."""
    shown = await proxy.proxy_page(api.reading, {"proxy": request.match_info["name"]}, api.clock())
    return shown | {"name": shown["cn"]}


async def pushes(api: Api, request: web.Request) -> Document:
    """Return the last xDS responses to a proxy, newest first. Raises NothingToShow."""
    name = find(api.reading, request.match_info["name"]).name
    return {"proxy": str(name), "pushes": proxy.history(api.reading, name)}


async def configuration(api: Api, request: web.Request) -> Document:
    """Return the configuration of a proxy as Envoy resources in JSON. Raises NothingToShow."""
    shown = await proxy.configured(api.reading, request.match_info["name"], api.clock())
    return {"proxy": shown["cn"], "configuration": shown["configuration"]}


async def all_streams(api: Api, request: web.Request) -> Document:
    """Return the open streams of all proxies, or of the proxy in the query. Raises NothingToShow."""
    wanted = request.query.get("proxy")
    name = None if wanted is None else str(find(api.reading, wanted).name)
    return {
        "streams": [
            streams.stream(stream) for stream in api.reading.streams() if name in (None, stream.node_key)
        ]
    }


async def all_published(api: Api, _request: web.Request) -> Document:
    """Return the versions of the resources of each proxy."""
    return await published(api.reading)


async def all_certificates(api: Api, _request: web.Request) -> Document:
    """Return the certificates of services and of proxies."""
    result = await certificates(api.reading, api.clock())
    return result | {"proxy_certificates": _with_name(result["proxy_certificates"], "proxy")}


async def policies(api: Api, request: web.Request) -> Document:
    """Return the mesh objects in use and all problems, or one object. Raises NothingToShow."""
    result = await debug.policies(api.reading, request.query.get("object"))
    # The page of one object has no failures, but the shape of the API requires the field.
    return {"failures": []} | result


async def explain(api: Api, request: web.Request) -> Document:
    """Return why a request is allowed or refused. Raises web.HTTPBadRequest.

    The query has caller and destination, or a gateway, or the `line` of an access log with both.
    """
    if request.query.keys().isdisjoint({"line", "gateway"}):
        _require(request, "from", "to")
    return {"logged": {}} | await Answers(api.reading, api.clock).explain(request)


async def connectivity(api: Api, request: web.Request) -> Document:
    """Return the state of each sidecar and endpoint on a request's path.

    Raises web.HTTPBadRequest, NothingToShow.
    """
    _require(request, "from", "to")
    return await Answers(api.reading, api.clock).connectivity(request)


async def all_sources(api: Api, _request: web.Request) -> Document:
    """Return the freshness and the object counts of each source of the mesh."""
    # In a thread, because a large cluster has thousands of watches.
    return await asyncio.to_thread(sources, api.reading, api.clock())


async def hosts(api: Api, request: web.Request) -> Document:
    """Return the lines of a hosts file for one namespace. Raises web.HTTPBadRequest."""
    _require(request, "namespace")
    return debug.hosts_lines(api.reading.view(), request.query["namespace"])


async def config(api: Api, _request: web.Request) -> Document:
    """Return the MeshConfig in use, and the server's settings."""
    return debug.config(api.reading)


async def loop(api: Api, _request: web.Request) -> Document:
    """Return the moments at which the event loop was blocked."""
    return debug.loop(api.reading)


def _require(request: web.Request, *names: str) -> None:
    """Raise web.HTTPBadRequest for the first of these query parameters missing in the request."""
    for name in names:
        if name not in request.query:
            raise web.HTTPBadRequest(reason=f"parameter {name} is missing")


def stamped(document: Document, now: datetime) -> Document:
    """Return an answer with the time `at`, unless the answer has one."""
    return {"at": jsonable(now)} | document


def _with_name(result: Json, field: str) -> list[Json]:
    every: Iterable[Json] = result if isinstance(result, list) else ()
    return [item | {field: item["cn"]} for item in every if isinstance(item, dict)]
