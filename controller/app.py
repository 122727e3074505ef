"""Runs the server: starts its parts in order, keeps them in one TaskGroup, ends them in order."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Final

import structlog
from aiohttp import web

from admin.http import commands
from admin.http.guard import LOOPBACK_NAMES
from admin.http.health import Health, HttpThread, application
from admin.http.heartbeat import beating
from admin.http.log_levels import add_log_levels
from admin.http.servers import SocketError, serving
from admin.pages import routes, site
from certs.errors import CertificateError
from certs.ledger.entry import LedgerEntry
from certs.opening import Opened, opened
from certs.renewal import CA_ENDS_SOON
from controller.driver_runner import Running, driving
from controller.drivers import ADS_DRIVER, MeshDrivers
from controller.errors import StartupError
from controller.gauges import Gauging, withheld_counts
from controller.probing import probing
from controller.process import descriptors, lock
from controller.process.handshakes import FailedHandshakes
from controller.process.levels import LogLevels
from controller.process.listening import Sockets, bound
from controller.process.memory import built_to_stay, estimated, tended, tending, trimming
from controller.process.service_manager import ServiceManager
from controller.process.tasks import TaskEnded, spawn
from controller.reloading import Reload
from controller.settings import Settings
from controller.wiring import Parts, join, paces
from mesh.host_port import HostPort
from mesh.names import TrustDomain
from providers.contract import SourceError
from sidecars.contract.errors import DriverError
from sidecars.contract.events import CertificateRevoked
from sidecars.registry import DriverRegistry
from xds.server.listener import ListenError

MEASURE_SECONDS: Final = 2.0
CLOCK_BEHIND: Final = timedelta(minutes=5)
"""By how much the newest certificate may be ahead of the clock: machines differ a little."""
_FIRST_READ: Final = "first read of the sources"
_FIRST_WAVE: Final = "first snapshots"
_DRIVERS: Final = "sidecar drivers"

_log = structlog.get_logger("controller.app")


@dataclass(frozen=True, slots=True)
class Bound:
    """Where the server listens: the addresses it was told, with the ports it has; `drivers` by name."""

    drivers: Mapping[str, HostPort]
    http: HostPort
    debug: HostPort
    webhook: HostPort | None = None

    @property
    def ads(self) -> HostPort:
        """Return where Envoys dial in; raise KeyError where there are to be none."""
        return self.drivers[ADS_DRIVER]


def utc_now() -> datetime:
    """Return the time; the only clock that knows the date."""
    return datetime.now(UTC)


async def run(
    settings: Settings,
    stop: asyncio.Event,
    clock: Callable[[], datetime] = utc_now,
    started: Callable[[Bound], None] = lambda _: None,
    handshakes: FailedHandshakes | None = None,
    reload: Reload | None = None,
    manager: ServiceManager | None = None,
) -> None:
    """Run the server until `stop` is set; `started` is told where it listens once it is ready.

    `handshakes` are those that fail meanwhile, as far as somebody reads of them. Settings are read again as
    `reload` says. `manager` is told how the server is.

    Raises StartupError for whatever keeps it from starting, TaskEnded if a part of it fails later.
    """
    with explained():
        lock.prepare(settings.state, shared=settings.shared_state)
        if settings.mesh is not None and not settings.mesh.is_dir():
            raise StartupError(f"the mesh directory {settings.mesh} is not there, or is no directory")
    descriptors.raise_limit()
    with lock.held(settings.state, lock.COMMAND_SECONDS), tended(), contextlib.ExitStack() as stack:
        with explained():
            found = stack.enter_context(_opened(settings, clock()))
            _say(found, settings, clock())
            drivers = MeshDrivers(DriverRegistry.discover().drivers, os.environ)
            parts = join(settings, found, drivers, clock)
            sockets = stack.enter_context(bound(settings))
        try:
            server = _Server(
                parts, sockets, handshakes or FailedHandshakes(), reload, manager or ServiceManager()
            )
            await server.run(stop, started)
        except* (StartupError, TaskEnded) as failed:
            raise first(failed) from failed


def _opened(settings: Settings, now: datetime) -> contextlib.AbstractContextManager[Opened]:
    return opened(settings.state, TrustDomain(settings.trust_domain), now, settings.begin_anew)


def _say(found: Opened, settings: Settings, now: datetime) -> None:
    """Say what whoever starts the server should know of its CA and clock."""
    if found.made:
        _log.info("a new CA was made", state=str(settings.state))
    if (left := found.authority.not_after - now) < CA_ENDS_SOON:
        _log.warning("the CA ends soon: no certificate outlives it", days=left.days)
    last = found.ledger.last_issued_at()
    if last is not None and last > now + CLOCK_BEHIND:
        said = {"clock": now.isoformat(), "issued": last.isoformat()}
        _log.warning("the clock is behind: a proxy certificate was issued later than that", **said)


def first(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first single error of a group of groups."""
    error = group.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn what may keep the server from starting into StartupError, in one sentence."""
    try:
        yield
    except (CertificateError, SourceError, DriverError, ListenError, SocketError) as error:
        raise StartupError(" ".join(str(error).split())) from error


class _Server:
    """One run of the server's parts."""

    def __init__(
        self,
        parts: Parts,
        sockets: Sockets,
        handshakes: FailedHandshakes,
        reload: Reload | None,
        manager: ServiceManager,
    ) -> None:
        self._parts = parts
        self._manager = manager
        self._reload = reload
        self._sockets = sockets
        self._handshakes = handshakes
        self._waiting = [_FIRST_READ, _FIRST_WAVE, _DRIVERS]
        self._unwell: tuple[str, ...] = ()
        self._degraded: tuple[str, ...] = ()

    async def run(self, stop: asyncio.Event, started: Callable[[Bound], None]) -> None:
        tasks: list[asyncio.Task[None]] = []
        async with self._cluster(), asyncio.TaskGroup() as group:
            try:
                tasks.append(spawn(group, "heartbeat", self._beating()))
                tasks += [spawn(group, name, work) for name, work in self._managed()]
                async with self._http() as http, self._debug() as debug, self._socket():
                    await self._first()
                    async with self._drivers(group, stop) as running, self._webhook() as webhook:
                        self._warn()
                        tasks += [spawn(group, name, work) for name, work in self._works(running)]
                        drivers = {name: each.address for name, each in running.items()}
                        self._serving(Bound(drivers, http, debug, webhook), started)
                        await stop.wait()
                        self._manager.stopping()
            finally:
                self._manager.stopping()
                for task in tasks:
                    task.cancel()
        _log.info("stopped")

    def _managed(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what tells the service manager, by name: from the beginning, and while the server drains."""
        if self._manager.listens:
            yield "service manager", self._manager.followed(self._missing, self._remarks)
            yield "service manager's watchdog", self._manager.fed(self._parts.heartbeat.alive)

    async def _missing(self) -> tuple[str, ...]:
        return self._waited_for()

    def _waited_for(self) -> tuple[str, ...]:
        return (*self._waiting, *self._unwell)

    def _remarks(self) -> tuple[str, ...]:
        webhook = () if self._parts.webhook is None else self._parts.webhook.remarks()
        return (*descriptors.remarks(), *self._parts.room.remarks(), *self._degraded, *webhook)

    async def _beating(self) -> None:
        await beating(self._parts.heartbeat, time.monotonic, told=self._parts.watchdog.late)

    async def _first(self) -> None:
        """Read the mesh for the first time, and follow it: then whoever comes can be answered."""
        with built_to_stay():
            with explained():
                await self._parts.sources.first()
            self._waiting.remove(_FIRST_READ)
            self._parts.delivery.loop.linting.postpone()
            await self._parts.delivery.loop.wave()
        self._waiting.remove(_FIRST_WAVE)

    def _warn(self) -> None:
        host = self._parts.settings.debug_address.host
        if host not in LOOPBACK_NAMES:
            _log.warning("the debug pages are open to other machines, to whoever asks", address=host)

    def _serving(self, bound: Bound, started: Callable[[Bound], None]) -> None:
        addresses = {name: str(address) for name, address in bound.drivers.items()}
        ads = addresses.pop(ADS_DRIVER, None)
        told = {"ads": ads, **addresses, "http": str(bound.http), "debug": str(bound.debug)}
        if bound.webhook is not None:
            told["webhook"] = str(bound.webhook)
        self._parts.listening.update({name: at for name, at in told.items() if at is not None})
        _log.info("serving", **told)
        started(bound)

    def _works(self, running: Mapping[str, Running]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what runs as long as the server does, by name."""
        parts = self._parts
        yield from parts.sources.works(parts.delivery.gathering.changed)
        yield from parts.delivery.works(parts.opened.ledger, parts.verdicts.keep, parts.clock)
        if parts.reporter is not None:
            yield from parts.reporter.works()
        yield "server certificate", parts.tls.renewing(parts.clock)
        yield "state directory", parts.room.watching()
        yield "measurements", self._measure()
        yield "memory", tending(self._held, lambda: self._streams() > 0)
        yield "free memory", trimming()
        if parts.webhook is not None:
            yield from parts.webhook.works()
        if self._reload is not None:
            yield "settings", parts.reloading.run(self._reload, self._hold)
        asked = {name: (each.probes, each.reached_at) for name, each in running.items()}
        yield "driver probes", probing(asked, self._are_unwell, parts.delivery.observer.own_connection)

    @contextlib.asynccontextmanager
    async def _drivers(
        self, group: asyncio.TaskGroup, stop: asyncio.Event
    ) -> AsyncIterator[Mapping[str, Running]]:
        """Serve proxies; what they have open has time to end only if the server was told to stop."""
        async with contextlib.AsyncExitStack() as stack:
            with explained():
                running = await stack.enter_async_context(driving(self._parts, group, stop))
            self._waiting.remove(_DRIVERS)
            try:
                yield running
            finally:
                self._waiting.append("stopping")

    def _hold(self, settings: Settings, changed: Sequence[str]) -> None:
        """Have settings hold that were read again; an unchanged level is left as `log-level` has set it."""
        if "log_level" in changed:
            LogLevels().set_level("", settings.log_level.value)
        self._parts.delivery.gathering.pace(paces(settings))

    def _are_unwell(self, names: tuple[str, ...]) -> None:
        self._unwell = tuple(f"sidecar driver {name}" for name in names)

    def _held(self) -> int:
        view = self._parts.delivery.loop.state.view
        values = 0 if view is None else view.graph.size()
        if self._parts.webhook is not None:
            values += self._parts.webhook.values
        return estimated(values, self._streams())

    def _streams(self) -> int:
        return sum(self._parts.delivery.observer.streams.values())

    def _report_handshakes(self) -> None:
        for why, count in sorted(self._handshakes.counted().items()):
            self._parts.metrics.handshakes_failed(why.value, count)
        for each in self._handshakes.due(time.monotonic()):
            last = each.last
            _log.warning("handshakes failed", reason=last.why.value, said=last.said, count=each.count)

    async def _measure(self) -> None:
        parts, gauging = self._parts, Gauging()
        while True:
            parts.delivery.observer.report()
            self._report_handshakes()
            # Probes ask in a thread of their own, and sources are looked at on the event loop.
            self._degraded = parts.sources.remarks()
            await gauging.count(parts.delivery.loop.state.published.snapshots)
            parts.metrics.measured(
                gauging.gauges(
                    parts.delivery.loop.state,
                    parts.delivery.observer.streams,
                    parts.delivery.registry.counts(),
                    parts.sources.all,
                    len(parts.delivery.certificates.certificates),
                    parts.heartbeat.take_worst(),
                    parts.clock(),
                    withheld=withheld_counts(parts.delivery.quarantine.findings.counts()),
                    unacked_age=parts.delivery.history.unanswered_age(time.monotonic()),
                    state_failing=bool(parts.room.trouble),
                    ledger_unwritten=parts.opened.ledger.unwritten,
                )
            )
            fresh = (each.freshness() for each in parts.sources.all)
            parts.metrics.watched((watch for each in fresh for watch in each.watches), parts.clock())
            await asyncio.sleep(MEASURE_SECONDS)

    @contextlib.asynccontextmanager
    async def _cluster(self) -> AsyncIterator[None]:
        """Be able to ask the cluster, if there is one, until all who may have ended."""
        if self._parts.cluster is None:
            yield
        else:
            async with self._parts.cluster.api:
                yield

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[HostPort]:
        parts = self._parts
        health = Health(parts.heartbeat.alive, self._waited_for, self._remarks)
        which = {"name": "meshwright", "version": version("meshwright")}
        thread = HttpThread(
            lambda: application(health, parts.metrics, which),
            self._sockets.http,
        )
        thread.start()
        try:
            yield HostPort(parts.settings.http_address.host, thread.port)
        finally:
            await asyncio.to_thread(thread.stop)

    @contextlib.asynccontextmanager
    async def _debug(self) -> AsyncIterator[HostPort]:
        parts, address = self._parts, self._parts.settings.debug_address
        app = site.application(
            routes.pages(parts.reading, parts.clock),
            (address.host, *parts.settings.debug_hosts),
            parts.clock,
            parts.pages.pages,
        )
        port = self._sockets.debug.getsockname()[1]
        async with serving(app, self._sockets.debug):
            yield HostPort(address.host, port)

    @contextlib.asynccontextmanager
    async def _webhook(self) -> AsyncIterator[HostPort | None]:
        """Answer API servers, if they are to ask: once the mesh has been read, of which they ask."""
        webhook, address = self._parts.webhook, self._parts.settings.webhook_address
        if webhook is None or address is None or self._sockets.webhook is None:
            yield None
            return
        port = self._sockets.webhook.getsockname()[1]
        async with webhook.serving(self._sockets.webhook):
            yield HostPort(address.host, port)

    @contextlib.asynccontextmanager
    async def _socket(self) -> AsyncIterator[None]:
        parts = self._parts
        app = web.Application(middlewares=[commands.explained])
        site.add_pages(app, routes.pages(parts.reading, parts.clock), parts.clock, parts.pages.pages)
        add_log_levels(LogLevels(), app)
        asked = commands.Commands(parts.reading, parts.proxies, self._revoked, parts.retried)
        commands.add_commands(app, asked)
        async with serving(app, self._sockets.unix):
            yield

    def _revoked(self, entry: LedgerEntry) -> None:
        _log.info("proxy certificate revoked", proxy=entry.common_name, serial=entry.serial)
        self._parts.delivery.readiness.revoked(entry)
        self._parts.events.publish(CertificateRevoked(entry.common_name, entry.serial))
