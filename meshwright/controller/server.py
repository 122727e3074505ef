"""One run of the server: start of the parts in order, in one TaskGroup, and shutdown in order."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from certs.errors import CertificateError
from certs.ledger.rebuilding import REBUILT
from meshwright.admin.http.guard import LOOPBACK_NAMES
from meshwright.admin.http.health import Health
from meshwright.admin.http.heartbeat import beating
from meshwright.admin.http.servers import SocketError
from meshwright.controller import listeners as doors
from meshwright.controller.delivery import paces
from meshwright.controller.driver_runner import RunningDriver, driving
from meshwright.controller.drivers import ADS_DRIVER
from meshwright.controller.errors import StartupError
from meshwright.controller.meters import ServerMeter
from meshwright.controller.observing.driver_probes import probing
from meshwright.controller.process import descriptors
from meshwright.controller.process.handshakes import FailedHandshakes
from meshwright.controller.process.levels import LogLevels
from meshwright.controller.process.listening import Sockets
from meshwright.controller.process.memory import built_to_stay, tending, trimming
from meshwright.controller.process.service_manager import ServiceManager
from meshwright.controller.process.tasks import spawn
from meshwright.controller.settings.reload import Reload
from meshwright.controller.settings.settings import Settings
from meshwright.controller.wiring import Parts
from meshwright.delivery.certificates.issuance_problems import remarks_on
from meshwright.delivery.proxies.expiry import Expiry, looking
from meshwright.mesh.host_port import HostPort
from meshwright.providers.contract import SourceError
from meshwright.sidecars.contract.errors import DriverError
from xds.server.listener import ListenError

_FIRST_READ: Final = "first read of the sources"
_FIRST_WAVE: Final = "first snapshots"
_DRIVERS: Final = "sidecar drivers"
_STOPPING: Final = "stopping"

_log = structlog.get_logger("controller.server")


@dataclass(frozen=True, slots=True)
class BoundAddresses:
    """The configured addresses with the ports in use; `drivers` by name.

    `enrolment` has the entries `enrolment` and `renewal`, if configured.
    """

    drivers: Mapping[str, HostPort]
    http: HostPort
    debug: HostPort
    webhook: HostPort | None = None
    enrolment: Mapping[str, HostPort] = field(default_factory=dict)
    peers: HostPort | None = None

    @property
    def ads(self) -> HostPort:
        """Return the address of Envoy's ADS server; raise KeyError if Envoy's driver does not run."""
        return self.drivers[ADS_DRIVER]


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn errors that prevent the start into StartupError with one sentence."""
    try:
        yield
    except (CertificateError, SourceError, DriverError, ListenError, SocketError) as error:
        raise StartupError(" ".join(str(error).split())) from error


class Server:
    """One run of the control plane, from the first read of the sources to the shutdown."""

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
        self._measuring = ServerMeter(parts, handshakes)
        self._waiting = [_FIRST_READ, _FIRST_WAVE, _DRIVERS]
        self._unwell: tuple[str, ...] = ()

    async def run(self, stop: asyncio.Event, started: Callable[[BoundAddresses], None]) -> None:
        """Run until `stop` is set; `started` receives the addresses.

        Raises a group of the errors that ended the run.
        """
        parts, sockets = self._parts, self._sockets
        health = Health(parts.monitors.heartbeat.alive, self._waited_for, self._remarks)
        tasks: list[asyncio.Task[None]] = []
        # Outside the group, so tasks that still end can send requests to the cluster.
        async with self._cluster(), asyncio.TaskGroup() as group:
            try:
                tasks.append(spawn(group, "heartbeat", self._beating()))
                tasks += [spawn(group, name, work) for name, work in self._managed()]
                async with (
                    doors.probes(parts, sockets, health) as http,
                    doors.pages(parts, sockets) as debug,
                    doors.commands(parts, sockets),
                ):
                    # Probes and commands answer already, because the first read of a large mesh takes a
                    # while.
                    await self._first()
                    async with (
                        self._drivers(group, stop) as running,
                        doors.webhook(parts, sockets) as webhook,
                        self._enrolment() as enrolment,
                        doors.peers(parts) as peers,
                    ):
                        self._warn()
                        tasks += [spawn(group, name, work) for name, work in self._works(running)]
                        drivers = {name: running_driver.address for name, running_driver in running.items()}
                        self._serving(
                            BoundAddresses(drivers, http, debug, webhook, enrolment, peers), started
                        )
                        await stop.wait()
                        self._manager.stopping()
                        # Readiness fails before the streams end, so that load balancers send the proxies to
                        # other servers.
                        self._waiting.append(_STOPPING)
                        await asyncio.sleep(parts.core.settings.shutdown_delay_seconds)
            finally:
                self._manager.stopping()
                for task in tasks:
                    task.cancel()
        _log.info("server stopped")

    def _managed(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield tasks for notifications of systemd, which also run before readiness and while draining."""
        if self._manager.listens:
            yield "service manager", self._manager.followed(self._missing, self._remarks)
            yield "service manager's watchdog", self._manager.fed(self._parts.monitors.heartbeat.alive)

    async def _missing(self) -> tuple[str, ...]:
        return self._waited_for()

    def _waited_for(self) -> tuple[str, ...]:
        parts = self._parts
        rebuilding = () if parts.identity.opened.rebuilding is None else (REBUILT,)
        isolated = () if parts.isolated is None else parts.isolated.waited_for()
        return (*self._waiting, *self._unwell, *rebuilding, *isolated, *parts.in_cluster.waited_for())

    def _remarks(self) -> tuple[str, ...]:
        parts, core = self._parts, self._parts.core
        return (
            *descriptors.remarks(),
            *parts.monitors.disk_space.remarks(),
            *parts.identity.older_ledger.remarks(),
            *remarks_on(core.delivery.certificates.running_out(core.clock())),
            *self._measuring.degraded,
            *parts.in_cluster.remarks(),
            *(() if parts.shared is None else parts.shared.remarks()),
        )

    async def _beating(self) -> None:
        monitors = self._parts.monitors
        await beating(monitors.heartbeat, time.monotonic, report_lag=monitors.watchdog.late)

    async def _first(self) -> None:
        """Read all sources and make the first wave; afterwards proxies can be served."""
        sources, loop = self._parts.core.sources, self._parts.core.delivery.loop
        with built_to_stay():
            with explained():
                await sources.first()
            self._waiting.remove(_FIRST_READ)
            # Otherwise the first wave would search the whole mesh for problems before it serves proxies.
            loop.linting.postpone()
            await loop.wave()
        self._waiting.remove(_FIRST_WAVE)

    def _warn(self) -> None:
        host = self._parts.core.settings.debug_address.host
        if host not in LOOPBACK_NAMES:
            _log.warning("debug pages are open to every machine that reaches their address", address=host)

    def _serving(self, bound: BoundAddresses, started: Callable[[BoundAddresses], None]) -> None:
        addresses = {name: str(address) for name, address in bound.drivers.items()}
        ads = addresses.pop(ADS_DRIVER, None)
        fields = {"ads": ads, **addresses, "http": str(bound.http), "debug": str(bound.debug)}
        if bound.webhook is not None:
            fields["webhook"] = str(bound.webhook)
        fields |= {name: str(address) for name, address in bound.enrolment.items()}
        if bound.peers is not None:
            fields["peers"] = str(bound.peers)
        self._parts.monitors.listening.update({name: at for name, at in fields.items() if at is not None})
        _log.info("server started", **fields)
        started(bound)

    def _works(
        self, running: Mapping[str, RunningDriver]
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks of the running server."""
        parts, core = self._parts, self._parts.core
        yield from core.sources.works(parts.changed)
        yield from core.delivery.works(parts.identity.opened.ledger, core.verdicts.keep, core.clock)
        yield from parts.in_cluster.works()
        yield from parts.shared_works()
        yield from self._balance()
        yield from parts.identity.works(parts.proxies.pages.taken, core.clock)
        yield from self._monitor_tasks()
        if self._reload is not None:
            yield "settings", core.reloading.run(self._reload, self._hold)
        asked = {
            name: (running_driver.probes, running_driver.reached_at)
            for name, running_driver in running.items()
        }
        yield "driver probes", probing(asked, self._are_unwell, core.delivery.observer.own_connection)

    def _balance(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the task that balances streams, if several servers serve the mesh."""
        parts = self._parts
        if parts.shared is not None:
            balance = parts.shared.balance(
                parts.proxies.pages.movable_streams,
                self._waited_for,
                lambda: _STOPPING in self._waiting,
                parts.core.metrics.streams_moved,
            )
            yield "balance between servers", balance.run()

    def _monitor_tasks(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of the tasks for monitoring."""
        parts, core = self._parts, self._parts.core
        delivery, exports = core.delivery, parts.monitors.span_export
        if exports is not None:
            yield from exports.works(delivery.journal.entered_until)
        yield "state directory", parts.monitors.disk_space.watching()
        yield "measurements", self._measuring.run()
        expiry = Expiry(
            delivery.registry,
            delivery.held_certificates,
            parts.identity.opened.ledger,
            delivery.shown_certificates,
            lambda: parts.in_cluster.gateway.end,
        )
        yield "expiry", looking(expiry, core.metrics, core.clock)
        yield "memory", tending(self._measuring.object_count, lambda: self._measuring.streams() > 0)
        yield "free memory", trimming()

    @contextlib.asynccontextmanager
    async def _enrolment(self) -> AsyncIterator[Mapping[str, HostPort]]:
        """Serve machines that join or renew, if configured."""
        if (enrolling := doors.enrolling(self._parts)) is None:
            yield {}
            return
        async with contextlib.AsyncExitStack() as stack:
            with explained():
                host_ports = await stack.enter_async_context(
                    enrolling.serving(self._parts.identity.tls.identity)
                )
            yield host_ports

    @contextlib.asynccontextmanager
    async def _drivers(
        self, group: asyncio.TaskGroup, stop: asyncio.Event
    ) -> AsyncIterator[Mapping[str, RunningDriver]]:
        """Run the sidecar drivers, which serve proxies.

        Streams get a drain time only after a regular stop.
        """
        async with contextlib.AsyncExitStack() as stack:
            with explained():
                running = await stack.enter_async_context(driving(self._parts, group, stop))
            self._waiting.remove(_DRIVERS)
            try:
                yield running
            finally:
                # Readiness also fails from here on if an error ends the server.
                if _STOPPING not in self._waiting:
                    self._waiting.append(_STOPPING)

    def _hold(self, settings: Settings, changed: Sequence[str]) -> None:
        """Apply changed settings.

        A log level set by `log-level` stays unless the setting itself has changed.
        """
        if "log_level" in changed:
            LogLevels().set_level("", settings.log_level.value)
        self._parts.core.delivery.gathering.pace(paces(settings))

    def _are_unwell(self, names: tuple[str, ...]) -> None:
        self._unwell = tuple(f"sidecar driver {name}" for name in names)

    @contextlib.asynccontextmanager
    async def _cluster(self) -> AsyncIterator[None]:
        """Keep the API client of the cluster, if any, open until all tasks have ended."""
        if (cluster := self._parts.in_cluster.cluster) is None:
            yield
        else:
            async with cluster.api:
                yield
