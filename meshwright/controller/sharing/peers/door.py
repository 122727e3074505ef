"""The port for other servers: the JSON API and the pages of this server, its facts, and three acts."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from socket import socket
from typing import Final

from aiohttp import web

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.openapi import EVENTS
from meshwright.admin.api.routes import add_api
from meshwright.admin.api.table import PREFIX
from meshwright.admin.api.tap import PATH as TAP
from meshwright.admin.api.tap import add_tap
from meshwright.admin.http.servers import serving
from meshwright.admin.pages import routes, site
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas.facts import encode_facts, facts_of
from meshwright.admin.replicas.peers import FACTS, PROGRESS, PULSE, RETRY, REVOCATIONS, SERVER, TRAFFIC
from meshwright.admin.replicas.pulse import ServerFacts, encode_pulse, encode_server, pulse_of
from meshwright.admin.replicas.traffic import encode_traffic, traffic_facts
from meshwright.controller.sharing.peers.guard import bounded, peers_only
from meshwright.controller.sharing.peers.tls import PeerTls
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.problems.problem import Problems
from meshwright.traffic.taps import Taps
from meshwright.traffic.traffic import HOUR

LARGEST_ACT: Final = 16 * 1024
"""Limit of a body in bytes."""

_LONG: Final = (TAP, PREFIX + EVENTS)
"""Paths with answers that go on, whose number has a limit of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSubjects:
    """Everything that the port answers from.

    `reading` reads this server only. `own_problems` are the problems that only this server can know, and
    `server` its facts about itself. `revoke` brings a revocation in force here, with serial and reason, and
    returns whether it is in force; `retry` offers a proxy the rejected resources again. `progress` returns
    the progress of changed objects at the proxies of this server.
    """

    reading: MeshReading
    trying: TrialRunner
    taps: Taps
    clock: Callable[[], datetime]
    own_problems: Callable[[], Problems]
    server: Callable[[], ServerFacts]
    revoke: Callable[[str, str], Awaitable[bool]]
    retry: Callable[[str], list[str]]
    progress: Callable[[], bytes] = lambda: b"[]"
    further: Callable[[], tuple[site.Page, ...]] = tuple


def application(subjects: PeerSubjects, domain: TrustDomain) -> web.Application:
    """Return the application. It never asks other servers, so questions cannot go in circles."""
    reading, clock = subjects.reading, subjects.clock
    guards = [peers_only(domain, clock, (REVOCATIONS, RETRY)), bounded(_LONG)]
    app = web.Application(middlewares=guards, client_max_size=LARGEST_ACT)
    site.add_pages(app, routes.pages(reading, clock), clock, subjects.further)
    add_tap(app, reading, subjects.taps)
    add_api(app, Api(reading, clock, subjects.trying))
    answers = _Answers(subjects)
    for path, answer in (
        (FACTS, answers.facts),
        (TRAFFIC, answers.traffic),
        (PULSE, answers.pulse),
        (SERVER, answers.server),
        (PROGRESS, answers.progress),
    ):
        app.router.add_get(path, answer)
    app.router.add_post(REVOCATIONS, answers.revoke)
    app.router.add_post(RETRY, answers.retry)
    return app


def serving_peers(
    subjects: PeerSubjects, domain: TrustDomain, listening: socket, tls: PeerTls
) -> AbstractAsyncContextManager[None]:
    """Serve other servers while the context lasts."""
    return serving(application(subjects, domain), listening, tls.server())


@dataclass(frozen=True, slots=True)
class _Answers:
    subjects: PeerSubjects

    async def facts(self, _request: web.Request) -> web.Response:
        facts = await facts_of(self.subjects.reading, self.subjects.own_problems())
        return _content(await asyncio.to_thread(encode_facts, facts))

    async def traffic(self, request: web.Request) -> web.Response:
        text = request.query.get("seconds", "")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 < seconds <= HOUR:  # False for nan as well
            raise web.HTTPBadRequest(reason=f"seconds is {text[:40]!r}: must be a number up to {HOUR:g}")
        made = traffic_facts(self.subjects.reading.traffic(), seconds, time.monotonic())
        return _content(await asyncio.to_thread(lambda: encode_traffic(made())))

    async def pulse(self, _request: web.Request) -> web.Response:
        return _content(encode_pulse(pulse_of(self.subjects.reading, self.subjects.own_problems())))

    async def server(self, _request: web.Request) -> web.Response:
        return _content(encode_server(self.subjects.server()))

    async def progress(self, _request: web.Request) -> web.Response:
        return _content(self.subjects.progress())

    async def revoke(self, request: web.Request) -> web.Response:
        serial, why = await _texts(request, "serial", "reason")
        return web.json_response({"in_force": await self.subjects.revoke(serial, why)})

    async def retry(self, request: web.Request) -> web.Response:
        (proxy,) = await _texts(request, "proxy")
        return web.json_response({"proxy": proxy, "offered": self.subjects.retry(proxy)})


async def _texts(request: web.Request, *names: str) -> list[str]:
    """Return text fields of a body. Raises web.HTTPBadRequest."""
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    values = [body.get(name) if isinstance(body, dict) else None for name in names]
    if not all(isinstance(value, str) for value in values):
        raise web.HTTPBadRequest(reason=f"the body must be JSON with the texts {', '.join(names)}")
    return [str(value) for value in values]


def _content(content: bytes) -> web.Response:
    return web.Response(body=content, content_type="application/json", status=HTTPStatus.OK)
