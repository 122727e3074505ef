"""`/api/v1/tap`: a stream of observed requests, one JSON object in each line.

A tap makes the server configure sidecars to report requests. Therefore the path is served only on the Unix
socket in the state directory.

A stream begins with `{"watching": {...}}`. Then there are lines for requests, for example `{"request":
{...}}`, or for skipped requests, such as `{"lost": 7}`. The last line is `{"ended": "..."}` with the reason.
"""

import asyncio
import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web
from aiohttp.hdrs import METH_HEAD

from catalog.relations.route_reach import attached_routes
from meshwright.admin.api.tap_query import TapQuery, parse_query
from meshwright.admin.html.style import SECURITY_HEADERS
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages.mesh.traffic import backends_of
from meshwright.admin.proxy_names import NothingToShow
from meshwright.admin.readers import ProxyReading
from meshwright.admin.replicas.view import Query, asked
from meshwright.delivery.proxies.status import ProxyState
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.tap import TappedRequest
from meshwright.traffic.taps import MOST_TAPS, Tap, Taps, TooManyTaps

if TYPE_CHECKING:
    from meshwright.admin.replicas.taps import OtherTaps, TapsElsewhere

PATH: Final = "/api/v1/tap"
LOOK_SECONDS: Final = 1.0
"""Maximum seconds until a disconnected client is noticed if no requests are reported."""
GONE_SECONDS: Final = 10.0
"""Seconds after which a client is disconnected if it does not read."""


class TapReading(ProxyReading, Protocol):
    """The readers of proxies and services for a tap of requests."""


@dataclass(slots=True)
class TapStream:
    """Server of the taps, for all clients until the server shuts down.

    `others` are the other servers of the mesh, None for the only server, or if these are not to be asked.
    """

    reading: TapReading
    taps: Taps
    others: "OtherTaps | None" = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def end(self, _app: web.Application) -> None:
        """End all taps when the server shuts down."""
        self.ended.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send requests to one client; the sidecars stop reporting when the stream ends for any reason."""
        request, query, only = asked(request) if self.others is not None else (request, (), None)
        try:
            wanted = parse_query(self.reading, request.query.items())
            names = self._names(only)
        except NothingToShow as error:
            return _refused(str(error), HTTPStatus.NOT_FOUND)
        except web.HTTPBadRequest as error:
            return _refused(error.reason, HTTPStatus.BAD_REQUEST)
        headers = {**SECURITY_HEADERS, "Content-Type": "application/x-ndjson"}
        if (
            request.method == METH_HEAD
        ):  # HEAD gets no content (RFC 9110, 9.3.2), so no sidecar needs to report
            return web.Response(headers=headers)
        noticed = asyncio.Event()
        try:
            # Before the headers are sent, because a refusal needs a status of its own.
            is_here = self.others is None or only in (None, self.others.replica)
            # A tap at other servers only makes no sidecar of this server report.
            tap = (self.taps.begin if is_here else Tap)(wanted.watched, noticed.set)
        except TooManyTaps:
            words = f"{MOST_TAPS} taps are running already, which is the limit: wait until one of them ends"
            return _refused(words, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            with contextlib.suppress(ConnectionResetError, TimeoutError):  # the client is gone
                client = _Client(request, response, wanted, is_here=is_here)
                if self.others is None:
                    await self._stream_requests(client, tap, noticed, None)
                else:
                    from meshwright.admin.replicas.taps import TapsElsewhere

                    by_name = _by_name(query, wanted)
                    elsewhere = TapsElsewhere(self.others, PATH, by_name, noticed.set)
                    try:
                        client.proxies_elsewhere = await elsewhere.begin(names)
                        await self._stream_requests(client, tap, noticed, elsewhere)
                    finally:
                        await elsewhere.end()
        finally:
            # Sidecars report while the tap exists, so it must end with the stream in every case.
            if is_here:
                self.taps.end(tap)
        return response

    def _names(self, only: str | None) -> list[str]:
        """Return the other servers to ask. Raises NothingToShow for an unknown server."""
        if self.others is None:
            return []
        here = self.others.names()
        if only is not None and only not in here:
            raise NothingToShow(f"replica {only[:200]!r} does not exist: must be one of {', '.join(here)}")
        return [name for name in here if name != self.others.replica and only in (None, name)]

    async def _stream_requests(
        self, client: "_Client", tap: Tap, noticed: asyncio.Event, elsewhere: "TapsElsewhere | None"
    ) -> None:
        clock = asyncio.get_running_loop().time
        until, count = clock() + client.query.seconds, 0
        await client.write_line({"watching": self._watching(client)})
        while (left := until - clock()) > 0 and client.is_there:
            if self.ended.is_set():
                await client.write_line({"ended": "the server is shutting down"})
                return
            await _first(noticed, min(left, LOOK_SECONDS))
            noticed.clear()
            # Cleared before the requests are taken: a report in between sets the event again.
            result, lost = tap.take()
            lines = self._lines(result)
            if elsewhere is not None:
                others, more = elsewhere.take()
                lines, lost = [*lines, *others], lost + more
            requests = [line for line in lines if "request" in line]
            for line in (*requests[: client.query.limit - count], *_others_than(requests, lines)):
                await client.write_line(line)
            count += len(requests)
            if count >= client.query.limit:
                await client.write_line({"ended": f"the limit of {client.query.limit} requests is reached"})
                return
            if lost:
                await client.write_line({"lost": lost})
        await client.write_line({"ended": f"the time of {client.query.seconds:g} seconds is over"})

    def _lines(self, result: Iterable[tuple[ProxyName, TappedRequest]]) -> list[Document]:
        requests = (request_document(proxy, request) for proxy, request in result)
        if self.others is None:
            return [{"request": request} for request in requests]
        return [{"request": request | {"replica": self.others.replica}} for request in requests]

    def _watching(self, client: "_Client") -> Document:
        """Return the tapped service, and the number of connected proxies serving this service.

        `routes` and `backends` are the Gateway API routes that lead calls to other Services, and these
        Services, because their sidecars get the calls.
        """
        watched = client.query.watched
        here = (proxy.name for proxy in self.reading.proxies() if proxy.state is ProxyState.CONNECTED)
        those = (
            name
            for name in here
            if watched.proxy in (None, name) and watched.service in self.taps.served(name)
        )
        count = sum(1 for _ in those) if client.is_here else 0
        result: Document = {"service": str(watched.service), "proxies": count + client.proxies_elsewhere}
        view = self.reading.view()
        routes = () if view is None else attached_routes(view, watched.service)
        others = sorted(backends_of(view, str(watched.service)) - {str(watched.service)}) if routes else []
        if others:
            result |= {"routes": list[Json](map(str, routes)), "backends": list[Json](others)}
        return result


@dataclass(slots=True)
class _Client:
    request: web.Request
    response: web.StreamResponse
    query: TapQuery
    proxies_elsewhere: int = 0
    is_here: bool = True

    @property
    def is_there(self) -> bool:
        return self.request.transport is not None

    async def write_line(self, line: Document) -> None:
        """Write one JSON line to the client.

        Raises TimeoutError if the client does not read for GONE_SECONDS.
        """
        async with asyncio.timeout(GONE_SECONDS):
            await self.response.write(f"{json.dumps(line)}\n".encode())


def _by_name(query: Query, wanted: TapQuery) -> Query:
    """Return a query with the common name of its proxy, as every server knows the proxy."""
    proxy = wanted.watched.proxy
    return [(name, str(proxy) if name == "proxy" and proxy is not None else value) for name, value in query]


def _others_than(requests: list[Document], lines: list[Document]) -> list[Document]:
    """Return the lines that are no requests, for example about a server that is missing."""
    return [line for line in lines if "request" not in line] if len(requests) < len(lines) else []


def add_tap(app: web.Application, reading: TapReading, taps: Taps, others: "OtherTaps | None" = None) -> None:
    """Add the tap to an application with the rest of the API, which provides the error handling."""
    tapping = TapStream(reading, taps, others)
    app.router.add_get(PATH, tapping.answer)
    app.on_shutdown.append(tapping.end)


def request_document(proxy: ProxyName, request: TappedRequest) -> Document:
    """Return a tapped request, reported by this proxy, as JSON."""
    caller = request.caller
    return {
        "at": jsonable(request.at),
        "proxy": str(proxy),
        "caller": None if caller is None else str(caller),
        "address": request.address,
        "port": request.port,
        "method": request.method,
        "authority": request.authority,
        "path": request.path,
        "status": request.status,
        "grpc_status": request.grpc_status,
        "flags": list[Json](request.flags),
        "details": request.details,
        "policy": request.policy,
        "milliseconds": round(request.seconds * 1000, 3),
        "received_bytes": request.received_bytes,
        "sent_bytes": request.sent_bytes,
    }


async def _first(noticed: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await noticed.wait()


def _refused(words: str, status: int) -> web.Response:
    return web.json_response({"error": words}, status=status, headers=SECURITY_HEADERS)
