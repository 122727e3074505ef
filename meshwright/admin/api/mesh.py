"""What the API says of the mesh: what the pages show, by its names there."""

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


@dataclass(frozen=True, slots=True)
class Api:
    """What answers are made of."""

    reading: MeshReading
    clock: Callable[[], datetime]
    trying: TrialRunner


async def overview(api: Api, _request: web.Request) -> Document:
    """Return how all is: a verdict of each part, and the worst of them."""
    glances = Glances(api.reading, api.clock)
    found = {
        "sources": await glances.sources(),
        "policies": await glances.policies(),
        "proxies": await glances.proxies(),
        "certificates": await glances.certificates(),
    }
    tone = worst(each.tone for each in found.values())
    first = next(each for each in found.values() if each.tone is tone)
    parts: list[Json] = [_part(name, each) for name, each in found.items()]
    return {"verdict": tone.value, "sentence": first.sentence, "parts": parts}


def _part(name: str, found: Verdict) -> Document:
    return {
        "part": name,
        "path": f"/api/v1/{name}",
        "verdict": found.tone.value,
        "sentence": found.sentence,
    }


async def all_proxies(api: Api, _request: web.Request) -> Document:
    """Return every proxy that is or should be here."""
    found = (await proxy.listed(api.reading, api.clock()))["proxies"]
    return {"proxies": _with_name(found, "name")}


async def one_proxy(api: Api, request: web.Request) -> Document:
    """Return one proxy, and what it was told in the mesh's words; raises NotShown."""
    shown = await proxy.told(api.reading, {"proxy": request.match_info["name"]}, api.clock())
    return shown | {"name": shown["cn"]}


async def pushes(api: Api, request: web.Request) -> Document:
    """Return what a proxy was sent last, newest first; raises NotShown."""
    name = find(api.reading, request.match_info["name"]).name
    return {"proxy": str(name), "pushes": proxy.history(api.reading, name)}


async def configuration(api: Api, request: web.Request) -> Document:
    """Return what a proxy is served, in its own words; raises NotShown."""
    shown = await proxy.configured(api.reading, request.match_info["name"], api.clock())
    return {"proxy": shown["cn"], "configuration": shown["configuration"]}


async def all_streams(api: Api, request: web.Request) -> Document:
    """Return the open streams, or one proxy's; raises NotShown."""
    wanted = request.query.get("proxy")
    name = None if wanted is None else str(find(api.reading, wanted).name)
    return {
        "streams": [streams.stream(each) for each in api.reading.streams() if name in (None, each.node_key)]
    }


async def all_published(api: Api, _request: web.Request) -> Document:
    """Return the versions of what each proxy is served."""
    return await published(api.reading)


async def all_certificates(api: Api, _request: web.Request) -> Document:
    """Return the certificates of services and of proxies."""
    found = await certificates(api.reading, api.clock())
    return found | {"proxy_certificates": _with_name(found["proxy_certificates"], "proxy")}


async def policies(api: Api, request: web.Request) -> Document:
    """Return the objects in force and what is wrong, or one object; raises NotShown."""
    found = await debug.policies(api.reading, request.query.get("object"))
    return {"failures": []} | found


async def explain(api: Api, request: web.Request) -> Document:
    """Return why a call may pass or not; raises web.HTTPBadRequest. A line may say who called whom."""
    if "line" not in request.query:
        _require(request, "from", "to")
    return {"logged": {}} | await Answers(api.reading, api.clock).explain(request)


async def connectivity(api: Api, request: web.Request) -> Document:
    """Return how all that a call goes by stands; raises web.HTTPBadRequest, NotShown."""
    _require(request, "from", "to")
    return await Answers(api.reading, api.clock).connectivity(request)


async def all_sources(api: Api, _request: web.Request) -> Document:
    """Return the sources: how fresh each is, and what it holds."""
    # The watches of a large cluster are many.
    return await asyncio.to_thread(sources, api.reading, api.clock())


async def hosts(api: Api, request: web.Request) -> Document:
    """Return the lines of a hosts file for one namespace; raises web.HTTPBadRequest."""
    _require(request, "namespace")
    return debug.hosts_lines(api.reading.view(), request.query["namespace"])


async def config(api: Api, _request: web.Request) -> Document:
    """Return the MeshConfig in force and the server's settings."""
    return debug.config(api.reading)


async def loop(api: Api, _request: web.Request) -> Document:
    """Return when the event loop was held."""
    return debug.loop(api.reading)


def _require(request: web.Request, *names: str) -> None:
    """Raise web.HTTPBadRequest for the first of these parameters that is missing."""
    for name in names:
        if name not in request.query:
            raise web.HTTPBadRequest(reason=f"parameter {name} is missing")


def stamped(document: Document, now: datetime) -> Document:
    """Return an answer with the moment that it is of, where it has none."""
    return {"at": jsonable(now)} | document


def _with_name(found: Json, field: str) -> list[Json]:
    every: Iterable[Json] = found if isinstance(found, list) else ()
    return [each | {field: each["cn"]} for each in every if isinstance(each, dict)]
