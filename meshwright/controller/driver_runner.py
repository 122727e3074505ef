"""Runner of the wanted sidecar drivers: start, supervision, and shutdown in order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from meshwright.controller.observing.driver_probes import started
from meshwright.controller.observing.taps import pass_to_taps
from meshwright.controller.process.tasks import TaskEnded, guard
from meshwright.controller.settings.settings import Settings
from meshwright.controller.wiring import Parts
from meshwright.delivery.proxies.identity import MeshAuthenticator
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.listening_sockets import reached_from_here
from meshwright.sidecars.contract.contexts import Clients, ControllerContext
from meshwright.sidecars.contract.errors import CannotStartError
from meshwright.sidecars.contract.health import HealthProbes
from meshwright.sidecars.contract.lifetime import Lifetime
from meshwright.sidecars.snapshots import OwnSnapshots
from xds.cache import NodeKey
from xds.limits import Limits

NAMESPACE: Final = "meshwright-system"
"""The control plane's namespace in a cluster."""
OVERTIME_SECONDS: Final = 5.0
"""Seconds beyond the drain time after which a driver is cancelled."""

_log = structlog.get_logger("controller.driver_runner")


@dataclass(frozen=True, slots=True)
class RunningDriver:
    """A running sidecar driver: the address of the server for proxies, and the health probes."""

    address: HostPort
    probes: HealthProbes

    @property
    def reached_at(self) -> str:
        """Return the host at which this process can connect to the driver's server."""
        return reached_from_here(self.address.host)


class DriverTasks:
    """Tasks of all sidecar drivers. An end of a task before the stop of the driver is an error."""

    def __init__(self, group: asyncio.TaskGroup, drain_seconds: float, spread_seconds: float = 0.0) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []
        self.lifetime = Lifetime(drain_seconds, self._spawn, spread_seconds)

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._group.create_task(self._guarded(name, work), name=name)
        self._tasks.append(task)
        return task

    async def _guarded(self, name: str, work: Coroutine[object, object, None]) -> None:
        try:
            await guard(name, work)
        except TaskEnded as ended:
            # A task may end when its driver is stopped, but an error is always reported.
            if ended.__cause__ is not None or not self.lifetime.over:
                raise

    async def end(self, *, in_order: bool) -> None:
        """Stop all drivers, and cancel slow tasks.

        Without `in_order` the drivers are cancelled at once.
        """
        if not in_order:
            self.lifetime.cancel()
        self.lifetime.stop()
        if not self._tasks:
            return
        # The drivers drain first; only those beyond the overtime are cancelled.
        drain = self.lifetime.spread_seconds + self.lifetime.drain_seconds
        _, late = await asyncio.wait(self._tasks, timeout=drain + OVERTIME_SECONDS)
        self.lifetime.cancel()
        for task in late:
            _log.error("driver task did not stop in time", task=task.get_name())
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=OVERTIME_SECONDS)


@contextlib.asynccontextmanager
async def driving(
    parts: Parts, group: asyncio.TaskGroup, stop: asyncio.Event
) -> AsyncIterator[Mapping[str, RunningDriver]]:
    """Run the wanted drivers while the context lasts; raise DriverError or ListenError.

    At the end drivers get their drain time only if the server was stopped by `stop`, and not by an error.
    """
    core, drivers = parts.core, parts.proxies.drivers
    view, settings = core.view(), core.settings
    if view is None:
        raise CannotStartError("drivers cannot start: the mesh could not be computed")
    drain, spread = settings.drain_seconds, settings.shutdown_spread_seconds
    tasks, running = DriverTasks(group, drain, spread), dict[str, RunningDriver]()
    try:
        for name in drivers.wanted(view, settings.driver_addresses):
            address = drivers.address(name, view, settings)
            probes = await drivers.drivers[name].start(_context(parts, name, address, tasks.lifetime))
            running[name] = RunningDriver(HostPort(address.host, probes.readiness.port), probes)
            if words := await started(
                probes.startup, running[name].reached_at, core.delivery.observer.own_connection
            ):
                raise CannotStartError(f"sidecar driver {name} did not become ready: {words}")
        # Lint then reports objects that name a driver that does not run.
        drivers.running = frozenset(running)
        yield running
    finally:
        await tasks.end(in_order=stop.is_set())


def _context(parts: Parts, name: str, address: HostPort, lifetime: Lifetime) -> ControllerContext:
    core, proxies = parts.core, parts.proxies
    delivery, authenticator = core.delivery, _authenticator(parts, name)

    def view_config() -> MeshConfig:
        view = core.view()
        return view.config if view is not None else MeshConfig()

    return ControllerContext(
        host=address.host,
        port=address.port,
        server_certificate=parts.identity.tls.identity,
        namespace=NAMESPACE,
        kubernetes=None,
        config=view_config,
        catalog=OwnSnapshots(delivery.cache, proxies.drivers.drivers[name].types),
        certificates=delivery.certificates,
        clients=Clients(
            authenticator,
            delivery.observer,
            _limits(core.settings),
            authenticator.hold_reason,
            authenticator.prepare,
        ),
        events=proxies.events,
        debug=proxies.pages,
        lifetime=lifetime,
        secrets=proxies.pages.secrets,
        tapped=partial(pass_to_taps, parts.monitors.taps),
        movable=proxies.pages.movable,
    )


def _authenticator(parts: Parts, driver: str) -> MeshAuthenticator:
    """Return the authenticator for the proxies of a driver."""
    core, identity = parts.core, parts.identity

    def not_served(proxy: ProxyName) -> str:
        return parts.proxies.drivers.not_served(core.view(), proxy, driver)

    def failed(proxy: ProxyName) -> str:
        has = core.delivery.cache.snapshot(NodeKey(str(proxy))) is not None
        return "" if has else parts.reading.failure(proxy)

    rebuilding = identity.opened.rebuilding
    return MeshAuthenticator(
        identity.opened.ledger,
        core.view,
        core.clock,
        not_served,
        failed,
        unknown=identity.older_ledger.show if rebuilding is None else rebuilding.show,
        trusts=identity.opened.authority.trusts,
        shown=core.delivery.shown_certificates,
        unknown_serials=identity.unknown_serials,
    )


def _limits(settings: Settings) -> Limits:
    """Return the limits on streams and connections for the drivers' servers, from the settings."""
    return Limits(
        streams=settings.max_streams,
        streams_per_certificate=settings.streams_per_certificate,
        streams_per_second=settings.streams_per_second,
        admission_seconds=settings.admission_seconds,
        connections=settings.max_connections,
        idle_connections=settings.idle_connections,
        idle_seconds=settings.idle_connection_seconds,
        handshake_seconds=settings.handshake_seconds,
        calls_at_once=settings.calls_at_once,
        calls_per_second=settings.calls_per_second,
        received_bytes_per_second=settings.received_bytes_per_second,
        age_seconds=settings.stream_age_seconds,
        write_seconds=settings.write_seconds,
        warming_seconds=settings.warming_seconds,
        types_per_certificate=settings.types_per_certificate,
        names_per_certificate=settings.names_per_certificate,
        bytes_per_certificate=settings.bytes_per_certificate,
        loop_share=settings.loop_share,
        loop_burst_seconds=settings.loop_burst_seconds,
        request_bytes=settings.request_bytes,
        node_bytes=settings.node_bytes,
        name_characters=settings.name_characters,
        type_url_characters=settings.type_url_characters,
        client_status_bytes=settings.client_status_bytes,
        unserved_seconds=settings.held_seconds,
        recheck_seconds=settings.recheck_seconds,
    )
