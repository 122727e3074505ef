"""The document server: `GET /v1/document` with an ETag, for the proxy that the client certificate names.

A request with `wait` seconds and an If-None-Match header is a long poll: the answer follows when the document
differs from the named version, or with 304 after the wait. For example, `GET /v1/document?wait=30`.
"""

import asyncio
import contextlib
import itertools
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog
from aiohttp import web
from aiohttp.hdrs import METH_HEAD

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening, plain
from meshwright.serving.runners import runner
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.errors import CannotStartError, NothingThereError
from meshwright.sidecars.contract.events import Event
from meshwright.sidecars.contract.health import HealthProbe, HealthProbes
from meshwright.sidecars.document.readers import Readers
from meshwright.sidecars.document.tls import server_context
from meshwright.sidecars.document.translate import CREDENTIALS, DOCUMENT, NAME
from xds.cache import NodeKey
from xds.hooks import AuthenticationUnavailable, Peer, StreamRefused
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Response
from xds.server.streams.shutdown_plan import planned_ends

PATH: Final = "/v1/document"
LONGEST_WAIT: Final = 60.0
SWEEP_SECONDS: Final = 5.0
MADE_SECONDS: Final = 5.0
"""Seconds that a request waits for the first document, which may just be in the making."""

ANY: Final = "*"
"""The value of If-None-Match for any version."""

_TAG: Final = re.compile(r'(?:W/)?"([^"]*)"')
_AT_ONCE: Final = 0.01
"""Seconds to wait for open requests after the deadline; aiohttp takes 0 as "unlimited"."""

_SHOWS: Final = (
    "proxies that read documents, by version; ?proxy=<name>: the document of one proxy, without credentials"
)
_log = structlog.get_logger("sidecars.document")


class DocumentServer:
    """Handler of proxies' requests for documents. Must be used on one event loop."""

    def __init__(self, context: ControllerContext) -> None:
        self._catalog = context.catalog
        self._clients = context.clients
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Event] = {}
        self._is_stopping = False
        self.readers = Readers(context.clients.observer, context.catalog)

    def application(self) -> web.Application:
        """Return the HTTP application with the one route for documents."""
        app = web.Application()
        app.router.add_get(PATH, self._answer_request)
        return app

    def wake(self) -> None:
        """Check all waiting requests again, because permissions changed or the server ends."""
        for event in self._waiting.values():
            event.set()

    async def dismiss(self, seconds: float) -> None:
        """Answer the waiting requests one after another over `seconds`, and keep no connection from now on.

        Without the spread, all readers would poll another server at the same moment.
        """
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        for planned in planned_ends(self._waiting, seconds):
            if planned.number in self._waiting and (left := began + planned.at - loop.time()) > 0:
                await asyncio.sleep(left)
            if (event := self._waiting.get(planned.number)) is not None:
                event.set()

    async def shown(self, query: Mapping[str, str]) -> Mapping[str, object]:
        """Return the debug page: all readers, or one proxy's document; raise NothingThereError.

        Credentials are never part of the page.
        """
        if (name := query.get("proxy")) is None:
            return {"readers": self.readers.shown()}
        snapshot = self._catalog.snapshot(NodeKey(name))
        if snapshot is None:
            raise NothingThereError(
                f"the driver does not have a document for proxy {name[:200]!r}: see /debug/proxy for its "
                "state"
            )
        return {"document": json.loads(snapshot.resources(DOCUMENT)[NAME].body), "version": version(snapshot)}

    async def _answer_request(self, request: web.Request) -> web.Response:
        response = await self._answer(request)
        if self._is_stopping:
            # Otherwise the reader would poll this server again on the same connection.
            response.force_close()
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        peer = _peer(request)
        try:
            wait = min(float(request.query.get("wait", 0)), LONGEST_WAIT)
        except ValueError:
            return _text_response(400, "wait must be a number of seconds")
        try:
            await self._clients.prepare(peer)
            node = self._clients.authenticator.authenticate(peer)
            if self.readers.too_many(node, self._clients.limits):
                return _text_response(429, "too many requests at once")
            # Without the newest tag, any of the others gives an answer at once. The smallest one makes the
            # choice the same for equal requests.
            tags, newest = _tags(request), self._version(node)
            had = newest if tags & {newest, ANY} else min(tags, default="")
            with self._reading(node, peer):
                # `*` matches every version, so such a request does not confirm one.
                self.readers.confirmed(node, "" if ANY in tags else had, newest)
                await self._changed(node, had, wait)
                if (
                    self._clients.authenticator.authenticate(peer) != node
                ):  # the identity may have been revoked during the wait
                    raise StreamRefused("identity changed")
                return self._current(node, tags, request.method)
        except StreamRefused as refused:
            self._clients.observer.refused(peer, refused.reason)
            return _text_response(403, "refused")
        except AuthenticationUnavailable as unavailable:
            self._clients.observer.refused(peer, unavailable.reason)
            return _text_response(503, "this certificate cannot be looked up now: try again later")

    @contextlib.contextmanager
    def _reading(self, node: NodeKey, peer: Peer) -> Iterator[None]:
        time = asyncio.get_running_loop().time
        self.readers.began(node, peer, time(), datetime.now(UTC))
        try:
            yield
        finally:
            self.readers.ended(node, time())

    async def _changed(self, node: NodeKey, had: str, seconds: float) -> None:
        """Wait until a proxy's document version differs from `had`, for at most this many seconds.

        For a proxy without a document the limit is at least MADE_SECONDS.
        """
        event = asyncio.Event()
        watch = self._catalog.watch(node, event.set)
        number = next(self._numbers)
        self._waiting[number] = event
        try:
            there = self._version(node)
            seconds = seconds if there else max(seconds, MADE_SECONDS)
            if seconds > 0 and there in ("", had):
                async with asyncio.timeout(seconds):
                    await event.wait()
        except TimeoutError:
            return
        finally:
            del self._waiting[number]
            self._catalog.unwatch(watch)

    def _version(self, node: NodeKey) -> str:
        snapshot = self._catalog.snapshot(node)
        return "" if snapshot is None else version(snapshot)

    def _current(self, node: NodeKey, tags: frozenset[str], method: str) -> web.Response:
        snapshot = self._catalog.snapshot(node)
        if snapshot is None:
            return _text_response(404, "the driver does not have a configuration for this proxy yet")
        newest = version(snapshot)
        headers = {"ETag": f'"{newest}"', "Cache-Control": "no-store"}
        if tags & {newest, ANY}:
            return web.Response(status=304, headers=headers)
        body = contents(snapshot)
        if method != METH_HEAD:  # a HEAD request gets no body
            response = Response(
                DOCUMENT, snapshot.version(DOCUMENT), Nonce(newest), snapshot.ordered(DOCUMENT)
            )
            self.readers.record_answer(node, newest, datetime.now(UTC), response, len(body))
        return web.Response(body=body, content_type="application/json", headers=headers)


async def start(context: ControllerContext) -> HealthProbes:
    """Start to serve documents, until the lifetime is over; return the health probes.

    Raises CannotStartError.
    """
    server = DocumentServer(context)
    drain = context.lifetime.drain_seconds
    running = runner(server.application(), _log, max(drain, _AT_ONCE))
    await running.setup()
    try:
        # The socket is made before the server, because port 0 lets the system choose, and the probe needs the
        # number.
        taken = listening(HostPort(context.host, context.port))
    except OSError as error:
        await running.cleanup()
        where = f"{context.host} port {context.port}"
        raise CannotStartError(f"the document server cannot listen on {where}: {error.strerror}") from error
    site = web.SockSite(running, taken, ssl_context=server_context(context.server_certificate))
    await site.start()

    def on_event(event: Event) -> None:
        del event
        server.wake()

    unsubscribe = context.events.subscribe(on_event)

    async def close(grace: float) -> None:
        # Stop listening first, because otherwise readers would poll this server again while it ends.
        for base_site in tuple(running.sites):
            await base_site.stop()
        try:
            await server.dismiss(context.lifetime.spread_seconds)
        finally:
            unsubscribe()
        server.wake()  # waiting requests are answered now
        if not grace and running.server is not None:
            await running.server.shutdown(_AT_ONCE)
        await running.cleanup()
        server.readers.all_gone()

    context.debug.streams(server.readers.statuses)
    context.debug.page("/debug/documents", _SHOWS, server.shown)
    context.lifetime.spawn("document server", context.lifetime.until_over(close))
    context.lifetime.spawn("document readers", _sweeping(context, server))
    probe = HealthProbe(taken.getsockname()[1])
    return HealthProbes(liveness=probe, readiness=probe, startup=probe)


async def _sweeping(context: ControllerContext, server: DocumentServer) -> None:
    """Drop readers that stopped polling, until the lifetime is over."""
    while not context.lifetime.over:
        await context.lifetime.pause(SWEEP_SECONDS)
        server.readers.sweep(asyncio.get_running_loop().time())


def version(snapshot: Snapshot) -> str:
    """Return the version of a document with credentials, a hash of both."""
    return f"{snapshot.version(DOCUMENT)}-{snapshot.version(CREDENTIALS)}"


def contents(snapshot: Snapshot) -> bytes:
    """Return the body of an answer, for example `{"credentials":{...},"document":{...}}`."""
    bodies = [snapshot.resources(type_url)[NAME].body for type_url in (DOCUMENT, CREDENTIALS)]
    return b'{"credentials":' + bodies[1] + b',"document":' + bodies[0] + b"}"


def _tags(request: web.Request) -> frozenset[str]:
    """Return the tags in If-None-Match, weak ones as strong (RFC 9110, 13.1.2 and 8.8.3.2), or `*`.

    For example, `W/"3-7"` gives `3-7`. A tag without quotes is accepted too.
    """
    text = ", ".join(request.headers.getall("If-None-Match", ())).strip()
    return frozenset(_TAG.findall(text)) - {ANY} or frozenset(filter(None, [text]))


def _peer(request: web.Request) -> Peer:
    connection = request.get_extra_info("ssl_object")
    shown = connection.getpeercert(binary_form=True) if connection is not None else None
    address = request.get_extra_info("peername") or ("", 0)
    pem = ssl.DER_cert_to_PEM_cert(shown).encode("ascii") if shown else None
    host = plain(address[0]) if address[0] else ""
    return Peer(pem, str(HostPort(host, address[1])))


def _text_response(status: int, words: str) -> web.Response:
    return web.Response(
        body=json.dumps({"error": words}).encode(), status=status, content_type="application/json"
    )
