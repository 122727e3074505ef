"""One proxy under the care of the agent: credential files, Envoy processes, and reported state."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from functools import partial

import structlog

from meshwright.agent.enrolment.certificate_keeper import EnrolledCertificate
from meshwright.agent.enrolment.settings import EnrolmentSettings
from meshwright.agent.envoy import draining
from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.envoy.gateway import GATEWAY_PATH
from meshwright.agent.envoy.lifecycle import EnvoyEnd, Lifecycle
from meshwright.agent.envoy.listeners import LISTENERS_PATH
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.envoy.supervisor import Supervisor
from meshwright.agent.errors import AgentError
from meshwright.agent.files import UNUSABLE, ProxyFiles
from meshwright.agent.hosts.file import HostsFile
from meshwright.agent.hosts.sync import HostNameSettings
from meshwright.agent.peers.reporting import EjectionReporter
from meshwright.agent.reach.connection_watch import ControlPlaneWatch
from meshwright.agent.reach.observations import ReachObservation
from meshwright.agent.reach.probing import ReachTarget, observe
from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.service_manager import Manager
from meshwright.agent.settings import AgentSettings
from meshwright.agent.statistics.exposition import Family, Kind, Sample, written
from meshwright.agent.statistics.page import Figures
from meshwright.agent.statistics.report_client import send_to_any
from meshwright.agent.statistics.reporting import StatisticsReporter
from meshwright.agent.status import readiness
from meshwright.agent.status.description import described
from meshwright.sidecars.envoy.bootstrap.bootstrap import server_name

# Only inbound calls are drained, because the application may still make calls while it ends.
_DRAIN_PATH = "/drain_listeners?graceful&skip_exit&inboundonly"
_POLL_SECONDS = 0.2

_log = structlog.get_logger("agent")


class Agent:
    """One proxy, with all tasks of the agent for the proxy: files, Envoy, enrolment, reports, hosts file."""

    def __init__(self, settings: AgentSettings, admin: EnvoyAdmin, stop: asyncio.Event) -> None:
        self._settings = settings
        self._admin = admin
        self._stop = stop
        self._runtime = RuntimeDirectory(settings.run)
        self._supervisor = Supervisor(settings.envoy, self._runtime, Lifecycle(settings.restart), admin)
        self._files = ProxyFiles(settings, self._runtime, self._supervisor)
        self._control_plane = ControlPlaneWatch(admin, self._observe)
        self._figures = Figures(admin)
        self._drains_since: float | None = None
        self._quick = False
        self._was_ready = False
        self._enrolled = None if settings.enrolment is None else self._enrolling(settings.enrolment)

    async def start(self) -> bool:
        """Prepare the run directory and start the first Envoy; raise AgentError if that is impossible.

        If the machine must join a mesh first, wait for the end of the enrolment. The result is False if a
        stop was requested meanwhile.
        """
        try:
            if self._enrolled is not None:
                # Joining is first, because Envoy needs the files at its start.
                await self._enrolled.begin(self._stop)
                if self._stop.is_set():
                    return False
            self._runtime.prepare()
            await self._files.take_new()
        except UNUSABLE as error:
            raise AgentError(" ".join(str(error).split())) from error
        return True

    async def watch(self) -> None:
        """Bring changed credential files and overrides into use, until cancelled.

        An unusable change is only logged and counted.
        """
        await self._files.watch()

    async def look_again(self, reload_event: asyncio.Event, manager: Manager | None) -> None:
        """Read the credential files and the override whenever `reload_event` is set, until cancelled."""
        while True:
            await reload_event.wait()
            reload_event.clear()
            with contextlib.nullcontext() if manager is None else manager.reloading():
                if await self._files.look():
                    _log.info("files reloaded; changed flags and environment variables need a restart")

    async def enrol(self) -> None:
        """Renew the proxy's certificate until cancelled, if enrolment is configured."""
        if self._enrolled is None:
            await self._stop.wait()
        else:
            await self._enrolled.run()

    async def report_ejections(self) -> None:
        """Report ejected endpoints to the control plane until cancelled, if the renewal address is known."""
        enrolment = self._settings.enrolment
        if enrolment is None or not enrolment.renewal:
            await self._stop.wait()
        else:
            own, domain = self._settings.credentials, self._settings.trust_domain
            await EjectionReporter(self._admin, enrolment.renewal, own, configured=domain).run()

    async def report_statistics(self) -> None:
        """Report Envoy's statistics to the control plane until cancelled, if the renewal address is known."""
        enrolment = self._settings.enrolment
        if enrolment is None or not enrolment.renewal:
            await self._stop.wait()
        else:
            servers = ServerRotation(enrolment.renewal)
            await StatisticsReporter(self._admin, partial(self._sent, servers)).run()

    async def _sent(self, servers: ServerRotation, report: bytes) -> int:
        shows, files = self._files.in_use(), self._runtime.credential("")
        return await send_to_any(servers, server_name(shows.trust_domain), files, report)

    def _enrolling(self, enrolment: EnrolmentSettings) -> EnrolledCertificate:
        directory, shared = self._settings.credentials, self._settings.shared_credentials
        return EnrolledCertificate(
            enrolment, directory, self._files.look, lambda: self._files.in_use().certificate, shared=shared
        )

    async def name(self) -> None:
        """Keep the names of callable services in the hosts file until cancelled, if a file is configured."""
        settings = self._settings
        if settings.hosts is None:
            await self._stop.wait()
            return
        namespace = self._files.in_use().name.namespace
        await HostNameSettings(
            self._admin, HostsFile(settings.hosts), namespace, settings.cluster_domain
        ).run()

    async def keep(self) -> EnvoyEnd:
        """Keep Envoy running; return why Envoy ended."""
        return await self._supervisor.run()

    async def end(self) -> None:
        """Drain the proxy's connections, unless `quit` was called, and stop Envoy."""
        if not self._quick:
            await self._drained()
        await self._supervisor.stop()

    async def not_ready(self) -> tuple[str, ...]:
        """Return the reasons for which the proxy is not ready; empty for a ready proxy."""
        # A draining proxy must not get new calls, although Envoy itself would still count as ready.
        if self._drains_since is not None or self._stop.is_set():
            return ("the proxy is draining",)
        if words := self._supervisor.not_running():
            return (words,)
        try:
            proxy_state = readiness.read_state(
                await self._admin.server_info(),
                await self._admin.text(readiness.STATS_PATH),
                *await self._sent_and_served(),
            )
        except AdminUnreachable as error:
            return (str(error),)
        ports = self._settings.application_ports
        reasons = readiness.missing(proxy_state, ports, was_ready=self._was_ready)
        self._was_ready = self._was_ready or not reasons
        return reasons

    async def _sent_and_served(self) -> tuple[Mapping[str, object], Mapping[str, object]]:
        """Return the listeners in use, which only some proxies need, and those sent to a gateway's proxy."""
        gateway = await self._admin.json(GATEWAY_PATH)
        needed = self._settings.application_ports or gateway.get("configs")
        return await self._admin.json(LISTENERS_PATH) if needed else {}, gateway

    def remarks(self) -> tuple[str, ...]:
        """Return warnings about the proxy: control plane not connected, certificate close to the expiry."""
        ending = "" if self._enrolled is None or self._files.shows is None else self._enrolled.remark()
        return tuple(filter(None, (self.remark(), ending)))

    def alive(self) -> bool:
        """Return whether the agent works; always True, because an agent exits when it gives up Envoy."""
        return not self.not_alive()

    def remark(self) -> str:
        """Return why the control plane is out of reach, and what to do; empty if connected."""
        return self._control_plane.standing.words

    async def status(self) -> Mapping[str, object]:
        """Return the full state of the proxy, as JSON values."""
        not_ready = await self.not_ready()
        shown = None if self._files.shows is None else self._files.shows.certificate
        pids = tuple(self._supervisor.pids.values())
        return described(self._settings.ads, not_ready, pids, shown, self._control_plane.standing)

    async def watch_control_plane(self) -> None:
        """Check the connection to the control plane until cancelled."""
        await self._control_plane.run()

    def not_alive(self) -> str:
        """Return why the agent does not work: always empty, because an agent exits when it gives up Envoy."""
        return ""

    async def proxy_metrics(self, whole: bool) -> str:
        """Return the proxy's Prometheus metrics; empty if Envoy does not answer.

        With `whole` all of Envoy's metrics are included.
        """
        return "" if self._files.shows is None else await self._figures.page(self._files.shows.name, whole)

    def own_metrics(self) -> str:
        """Return the agent's own Prometheus metrics: running Envoys, accepted and refused file changes."""
        messages = (
            ("envoys", Kind.GAUGE, "Envoys that run: two during a hot restart.", len(self._supervisor.pids)),
            (
                "credentials_taken_total",
                Kind.COUNTER,
                "Certificates that the agent has started to use.",
                self._files.taken,
            ),
            (
                "changes_refused_total",
                Kind.COUNTER,
                "Changes of files that could not be used.",
                self._files.refused,
            ),
        )
        return written(
            Family(f"meshwright_agent_{name}", kind, words, (Sample((), value),))
            for name, kind, words, value in messages
        )

    async def drain(self) -> None:
        """Begin to drain.

        Envoy discourages calls to the workload, and closes kept connections with their next answer.

        The time of the drain counts from the first call, so an early call makes the proxy end sooner. If
        Envoy cannot be reached, a warning is logged, and the next call tries again.
        """
        if self._drains_since is None:
            self._drains_since = time.monotonic()
        try:
            await self._admin.text(_DRAIN_PATH, "POST")  # has no effect on an Envoy that drains already
        except AdminUnreachable as error:
            _log.warning(
                "envoy drain failed; the agent tries again at the next request, or when it stops",
                reason=str(error),
            )

    def quit(self) -> None:
        """Stop the agent and Envoy now, without draining connections."""
        self._quick = True
        self._stop.set()

    async def _drained(self) -> None:
        began = self._drains_since if self._drains_since is not None else time.monotonic()
        await self.drain()
        connections = await self._connections()
        while not (
            self._quick or draining.is_over(self._settings.drain, time.monotonic() - began, connections)
        ):
            await asyncio.sleep(_POLL_SECONDS)
            connections = await self._connections()

    async def _connections(self) -> int | None:
        if not self._supervisor.pids:
            return 0
        try:
            return draining.in_use(await self._admin.text(draining.CONNECTIONS_PATH))
        except AdminUnreachable:
            return None

    async def _observe(self) -> tuple[ReachObservation, ...]:
        """Diagnose the connection to each server of the control plane, by connecting as Envoy does."""
        shows, files = self._files.in_use(), self._runtime.credential("")
        targets = (ReachTarget(at, files, shows.certificate, shows.trust_domain) for at in self._settings.ads)
        return tuple(await asyncio.gather(*map(observe, targets)))
