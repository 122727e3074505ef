"""Runs the server: starts its parts in order, keeps them in one TaskGroup, ends them in order."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from socket import socket
from typing import Final

import structlog
from aiohttp import web

from admin import commands, pages
from admin.guard import LOOPBACK_NAMES
from admin.heartbeat import beating
from admin.http import Health, HttpThread, application, listen
from admin.serving import SOCKET_NAME, SocketError, serving, unix_socket
from certs.authority import CertificateAuthority
from certs.errors import CertificateError
from certs.ledger import Ledger, LedgerEntry
from controller import lock
from controller.errors import StartupError
from controller.gauges import Gauging
from controller.parts import Parts, join
from controller.proxies import LEDGER_FILE
from controller.settings import Address, Settings
from controller.tasks import TaskEnded, spawn
from mesh.names import TrustDomain
from providers.files import DirectoryError
from sidecars.registry import DriverError, DriverRegistry
from xds.server import ListenError

MEASURE_SECONDS: Final = 2.0
SERVER_CERTIFICATE_SECONDS: Final = 3600.0
DRIVER: Final = "envoy"
"""The kind of proxy served; MeshConfig's sidecarClass is read, and nothing else is there yet to choose."""
_FIRST_READ: Final = "first read of the mesh directory"
_FIRST_WAVE: Final = "first snapshots"
_ADS: Final = "ADS"

_log = structlog.get_logger("controller.app")


@dataclass(frozen=True, slots=True)
class Bound:
    """Where the server listens: the addresses it was told, with the ports it has."""

    ads: Address
    http: Address
    debug: Address


def utc_now() -> datetime:
    """Return the time; the only clock that knows the date."""
    return datetime.now(UTC)


async def run(
    settings: Settings,
    stop: asyncio.Event,
    clock: Callable[[], datetime] = utc_now,
    started: Callable[[Bound], None] = lambda _: None,
) -> None:
    """Run the server until `stop` is set; `started` is told where it listens once it is ready.

    Raises StartupError for whatever keeps it from starting, TaskEnded if a part of it fails later.
    """
    with explained():
        lock.prepare(settings.state)
        if not settings.mesh.is_dir():
            raise StartupError(f"the mesh directory {settings.mesh} is not there, or is no directory")
    with lock.held(settings.state), contextlib.ExitStack() as stack:
        with explained():
            authority = CertificateAuthority.open(settings.state, TrustDomain(settings.trust_domain), clock())
            ledger = stack.enter_context(Ledger.open(settings.state / LEDGER_FILE))
            driver = DriverRegistry.discover().choose(DRIVER)
            parts = join(settings, authority, ledger, driver, clock)
            sockets = stack.enter_context(_bound(settings))
        try:
            await _Server(parts, sockets).run(stop, started)
        except* (StartupError, TaskEnded) as failed:
            raise first(failed) from failed


def first(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first single error of a group of groups."""
    error = group.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error


def stop_on_signals(stop: asyncio.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT; a second one ends the process as if nobody listened."""
    loop = asyncio.get_running_loop()

    def begin(number: signal.Signals) -> None:
        _log.info("stopping", signal=number.name)
        stop.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, begin, each)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn what may keep the server from starting into StartupError, in one sentence."""
    try:
        yield
    except (CertificateError, DirectoryError, DriverError, ListenError, SocketError) as error:
        raise StartupError(" ".join(str(error).split())) from error


def listening(name: str, address: Address) -> socket:
    """Listen on an address; raise StartupError, which names the setting and the address."""
    try:
        return listen(address.host, address.port)
    except OSError as error:
        known = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno) if known and error.errno else "the host is not known here"
        raise StartupError(f"cannot listen on {address} ({name}): {reason}") from error


@dataclass(frozen=True, slots=True)
class _Sockets:
    """What is listened on before anything runs, so that a port in use is found first."""

    http: socket
    debug: socket
    unix: socket


@contextlib.contextmanager
def _bound(settings: Settings) -> Iterator[_Sockets]:
    """Listen on every address but the ADS server's, which is only tried: grpcio says not why it fails."""
    path = settings.state / SOCKET_NAME
    with contextlib.ExitStack() as stack:
        listening("ads_address", settings.ads_address).close()
        http = stack.enter_context(listening("http_address", settings.http_address))
        debug = stack.enter_context(listening("debug_address", settings.debug_address))
        unix = stack.enter_context(unix_socket(path))
        stack.callback(path.unlink, missing_ok=True)
        yield _Sockets(http, debug, unix)


class _Server:
    """One run of the server's parts."""

    def __init__(self, parts: Parts, sockets: _Sockets) -> None:
        self._parts = parts
        self._sockets = sockets
        self._waiting = [_FIRST_READ, _FIRST_WAVE, _ADS]

    async def run(self, stop: asyncio.Event, started: Callable[[Bound], None]) -> None:
        tasks: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as group:
            try:
                tasks.append(spawn(group, "heartbeat", beating(self._parts.heartbeat, time.monotonic)))
                async with self._http() as http, self._debug() as debug, self._socket():
                    await self._first()
                    async with self._ads(stop) as ads:
                        self._warn()
                        tasks += [spawn(group, name, work) for name, work in self._works()]
                        _log.info("serving", ads=str(ads), http=str(http), debug=str(debug))
                        started(Bound(ads, http, debug))
                        await stop.wait()
            finally:
                for task in tasks:
                    task.cancel()
        _log.info("stopped")

    async def _first(self) -> None:
        """Read the mesh for the first time, and publish what it comes to."""
        with explained():
            await asyncio.to_thread(self._parts.source.load)
        self._waiting.remove(_FIRST_READ)
        await self._parts.loop.wave()
        self._waiting.remove(_FIRST_WAVE)

    def _warn(self) -> None:
        host = self._parts.settings.debug_address.host
        if host not in LOOPBACK_NAMES:
            _log.warning("the debug pages are open to other machines, to whoever asks", address=host)

    def _works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what runs as long as the server does, by name."""
        parts = self._parts
        yield "mesh source", parts.source.run(parts.loop.changed)
        yield "mesh loop", parts.loop.run()
        yield "problems", parts.loop.linting()
        yield "renewals", parts.loop.renewing()
        yield "server certificate", self._renew_server_certificate()
        yield "measurements", self._measure()

    @contextlib.asynccontextmanager
    async def _ads(self, stop: asyncio.Event) -> AsyncIterator[Address]:
        """Serve proxies; their streams have time to end only if the server was told to stop."""
        settings, ads = self._parts.settings, self._parts.ads
        with explained():
            port = await ads.start(str(settings.ads_address))
        self._waiting.remove(_ADS)
        try:
            yield Address(settings.ads_address.host, port)
        finally:
            self._waiting.append("stopping")
            await ads.stop(settings.drain_seconds if stop.is_set() else 0.0)

    async def _measure(self) -> None:
        parts, gauging = self._parts, Gauging()
        while True:
            parts.metrics.measured(
                gauging.gauges(
                    parts.loop.state,
                    parts.observer.streams,
                    parts.registry.counts(),
                    (parts.source,),
                    len(parts.keeper.certificates),
                    parts.heartbeat.take_worst(),
                    parts.clock(),
                )
            )
            await asyncio.sleep(MEASURE_SECONDS)

    async def _renew_server_certificate(self) -> None:
        while True:
            await asyncio.sleep(SERVER_CERTIFICATE_SECONDS)
            try:
                await asyncio.to_thread(self._parts.tls.refresh, self._parts.clock())
            except CertificateError as error:
                _log.error("server certificate not renewed", reason=str(error))

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[Address]:
        parts = self._parts
        health = Health(parts.heartbeat.alive, lambda: tuple(self._waiting))
        which = {"name": "meshwright", "version": version("meshwright")}
        thread = HttpThread(
            lambda: application(health, parts.metrics, which),
            self._sockets.http,
        )
        thread.start()
        try:
            yield Address(parts.settings.http_address.host, thread.port)
        finally:
            await asyncio.to_thread(thread.stop)

    @contextlib.asynccontextmanager
    async def _debug(self) -> AsyncIterator[Address]:
        parts, address = self._parts, self._parts.settings.debug_address
        app = pages.application(
            pages.pages(parts.reading, parts.clock), (address.host, *parts.settings.debug_hosts)
        )
        port = self._sockets.debug.getsockname()[1]
        async with serving(app, self._sockets.debug):
            yield Address(address.host, port)

    @contextlib.asynccontextmanager
    async def _socket(self) -> AsyncIterator[None]:
        parts = self._parts
        app = web.Application(middlewares=[commands.explained])
        pages.add_pages(app, pages.pages(parts.reading, parts.clock))
        commands.add_commands(app, parts.reading, parts.proxies, self._revoked)
        async with serving(app, self._sockets.unix):
            yield

    def _revoked(self, entry: LedgerEntry) -> None:
        _log.info("proxy certificate revoked", proxy=entry.common_name, serial=entry.serial)
        self._parts.ads.recheck()
