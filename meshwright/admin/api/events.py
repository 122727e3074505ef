"""`/api/v1/events`: changes of the mesh as server-sent events.

An event names the changed parts and proxies, and a client then reads the other paths, for example
`/api/v1/proxies`. The mesh is compared once a second while clients are connected. All clients share one
comparison, and without clients the server does no work.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web
from aiohttp.hdrs import METH_HEAD

from meshwright.admin.api.shape import MOMENT, TEXT, WHOLE, Shape, listed, noted, one_of, record
from meshwright.admin.html.style import SECURITY_HEADERS
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.readers import ChangeReading, ProxyReading, TrafficReading
from meshwright.admin.replicas.view import AllReplicas
from meshwright.delivery.proxies.status import ProxyState
from meshwright.mesh.identity import ProxyName, is_proxy_name
from meshwright.mesh.problems.problem import Problems, ordered

if TYPE_CHECKING:
    from meshwright.admin.replicas.pulse import Pulse

CLIENTS: Final = 8
"""Maximum number of connected clients."""
EVERY_SECONDS: Final = 1.0
"""Seconds between two comparisons of the mesh."""
HEARTBEAT_SECONDS: Final = 15.0
"""Seconds without a change after which a comment line keeps the connection open."""
GONE_SECONDS: Final = 10.0
"""Seconds after which a client is disconnected if it does not read."""
PARTS: Final = ("mesh", "problems", "proxies", "answers", "figures")
NAMED: Final = 100
"""Maximum number of connected and of disconnected proxies in an event; the others are counted."""

CHANGED: Final[Shape] = record(
    {
        "at": MOMENT,
        "parts": noted(listed(one_of(*PARTS)), "changed parts"),
        "came": noted(listed(TEXT), "newly connected proxies"),
        "went": noted(listed(TEXT), "disconnected proxies"),
        "more": noted(WHOLE, "number of further connected and disconnected proxies that are not named"),
    }
)


class EventReading(ChangeReading, ProxyReading, TrafficReading, Protocol):
    """Access to the server's state, as the stream of change events needs it."""


@dataclass(frozen=True, slots=True)
class MeshFingerprint:
    """The smallest set of values with which two moments of the mesh can be compared.

    `mesh` is compared by identity. `reported` is the time of the last traffic report, of each server if the
    mesh has several.
    """

    mesh: object
    problems: Problems
    connected: frozenset[ProxyName]
    expected: frozenset[ProxyName]
    answers: int
    reported: object


def over_all(own: MeshFingerprint, pulses: "Mapping[str, Pulse]") -> MeshFingerprint:
    """Return the fingerprint of a mesh with several servers; `own` is the one of this server."""
    known = own.connected | own.expected
    connected = own.connected | {
        ProxyName.parse(name) for pulse in pulses.values() for name in pulse.connected if is_proxy_name(name)
    }
    of_others = (problem for pulse in pulses.values() for problem in pulse.problems)
    return MeshFingerprint(
        own.mesh,
        ordered((*own.problems, *of_others)),
        connected,
        known - connected,
        own.answers + sum(pulse.answers for pulse in pulses.values()),
        (own.reported, *((name, pulse.reported) for name, pulse in sorted(pulses.items()))),
    )


def seen(reading: EventReading) -> MeshFingerprint:
    """Return the fingerprint of the mesh now, for a comparison with a later one."""
    statuses = reading.proxies()
    connected = frozenset(status.name for status in statuses if status.state is ProxyState.CONNECTED)
    every = frozenset(status.name for status in statuses)
    mesh, problems = reading.newest()
    return MeshFingerprint(
        mesh, problems, connected, every - connected, reading.answers(), reading.traffic().newest
    )


def changed(before: MeshFingerprint, after: MeshFingerprint, at: datetime) -> Document | None:
    """Return the event for the changes between two fingerprints of the mesh, or None without changes."""
    came = sorted(map(str, after.connected - before.connected))
    went = sorted(map(str, before.connected - after.connected))
    parts = {
        # By identity, because each wave creates a new object and a comparison of content takes long.
        "mesh": after.mesh is not before.mesh,
        "problems": after.problems != before.problems,
        "proxies": bool(came or went) or after.expected != before.expected,
        "answers": after.answers != before.answers,
        "figures": after.reported != before.reported,
    }
    if not any(parts.values()):
        return None
    more = max(0, len(came) - NAMED) + max(0, len(went) - NAMED)
    return {
        "at": jsonable(at),
        "parts": [name for name, is_other in parts.items() if is_other],
        "came": list[Json](came[:NAMED]),
        "went": list[Json](went[:NAMED]),
        "more": more,
    }


@dataclass(slots=True)
class Events:
    """Server of the event stream, for all clients until the server shuts down.

    `replicas` are the servers of the mesh, None for the only one.
    """

    reading: EventReading
    clock: Callable[[], datetime]
    replicas: AllReplicas | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    clients: int = 0
    _seen: tuple[float, MeshFingerprint] | None = None

    async def end(self, _app: web.Application) -> None:
        """End the streams of all clients when the server shuts down."""
        self.ended.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send events to one client until the client disconnects; refuse more than CLIENTS clients with 503.

        HEAD gets the headers of GET without content (RFC 9110, 9.3.2).
        """
        # Far below servers.CONNECTIONS, so that pages still find a free connection.
        if self.clients >= CLIENTS:
            words = (
                f"{CLIENTS} clients are connected already, which is the limit: poll the other paths instead"
            )
            return web.json_response({"error": words}, status=503, headers=SECURITY_HEADERS)
        headers = {**SECURITY_HEADERS, "Content-Type": "text/event-stream"}
        if request.method == METH_HEAD:
            return web.Response(headers=headers)
        self.clients += 1
        try:
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            with contextlib.suppress(ConnectionResetError, TimeoutError):  # the client is gone
                await self._stream_events(request, response)
        finally:
            self.clients -= 1
        return response

    async def _stream_events(self, request: web.Request, response: web.StreamResponse) -> None:
        # Taken before the first byte of content, so that every change after this byte is an event.
        before, sent = await self._look(), time.monotonic()
        # Milliseconds after which a browser reconnects.
        await _write_lines(response, "retry: 2000")
        while not self.ended.is_set() and request.transport is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await self.ended.wait()
            after = await self._look()
            event = changed(before, after, self.clock())
            if event is not None:
                await _write_lines(response, "event: changed", f"data: {json.dumps(event)}")
            elif time.monotonic() - sent >= HEARTBEAT_SECONDS:
                await _write_lines(response, ": nothing has changed")
            else:
                continue
            before, sent = after, time.monotonic()

    async def _look(self) -> MeshFingerprint:
        """Return the fingerprint of the mesh, at most half of EVERY_SECONDS old."""
        now = time.monotonic()
        if self._seen is None or now - self._seen[0] > EVERY_SECONDS / 2:
            if self.replicas is None:
                self._seen = now, seen(self.reading)
            else:
                pulses = await self.replicas.pulses()
                self._seen = now, over_all(seen(self.reading), pulses)
        return self._seen[1]


async def _write_lines(response: web.StreamResponse, *lines: str) -> None:
    """Write the lines of one event. Raises TimeoutError if the client does not read for GONE_SECONDS."""
    async with asyncio.timeout(GONE_SECONDS):
        await response.write("\n".join((*lines, "", "")).encode())
