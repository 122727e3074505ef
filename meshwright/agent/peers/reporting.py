"""Reports of ejected endpoints to the control plane: on each change, and before the last report expires.

Reports are made only while endpoints are ejected, each by a short-lived subprocess
(`meshwright.agent.subprocess_call`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from meshwright.agent.enrolment.failures import combined
from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.peers.ejected_endpoints import CLUSTERS_PATH, STATS_PATH, ejected, has_ejected
from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.subprocess_call import ApartFailed, apart
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain

PROGRAM: Final = "meshwright.agent.peers.program"
LOOK_SECONDS: Final = 5.0
SECONDS: Final = 60.0
LEAST_SECONDS: Final = 10.0
"""Least seconds between two reports."""
REFUSED_SECONDS: Final = 300.0
"""Seconds before another try after a refusal, for example by an older control plane."""

_log = structlog.get_logger("agent.peers")


@dataclass(frozen=True, slots=True)
class ReportTask:
    """Input of the program.

    The endpoints, the control plane's address, and the directory of the credential files.

    `trust_domain` is the mesh's, if given.
    """

    at: HostPort
    directory: Path
    ejected: tuple[HostPort, ...]
    trust_domain: TrustDomain | None = None


@dataclass(frozen=True, slots=True)
class ReportAccepted:
    """The control plane accepted the report of ejected endpoints, which holds for this many seconds."""

    holds: int


Answer = ReportAccepted | EnrolmentFailure


class EjectionReporter:
    """Reports of one proxy; `renewal` are the renewal ports of the control plane's servers.

    A report goes to one server, and to the next one if the first fails.

    `configured` is the mesh's trust domain, if given by an option.
    """

    def __init__(
        self,
        admin: EnvoyAdmin,
        renewal: tuple[HostPort, ...],
        directory: Path,
        *,
        configured: TrustDomain | None = None,
        ask: Callable[[ReportTask], Awaitable[Answer]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._servers = ServerRotation(renewal)
        self._directory = directory
        self._trust_domain = configured
        self._ask = ask or _program
        self._monotonic = monotonic
        self._reported: tuple[HostPort, ...] = ()
        self._again = 0.0
        self._not_before = 0.0
        self._why = ""

    async def run(self) -> None:
        """Check for ejected endpoints and report them, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Report the ejected endpoints if a report is due and Envoy runs."""
        try:
            host_ports = await self._ejected()
        except AdminUnreachable:
            return
        now = self._monotonic()
        is_due = host_ports != self._reported or (host_ports and now >= self._again)
        if is_due and now >= self._not_before:
            await self._report(host_ports, now)

    async def _ejected(self) -> tuple[HostPort, ...]:
        if not has_ejected(await self._admin.text(STATS_PATH)):
            return ()
        return ejected(await self._admin.json(CLUSTERS_PATH))

    async def _report(self, host_ports: tuple[HostPort, ...], now: float) -> None:
        match await self._answer(host_ports):
            case ReportAccepted(holds):
                self._reported, self._why = host_ports, ""
                self._again, self._not_before = now + holds / 2, now + LEAST_SECONDS
            case EnrolmentFailure(why, refused):
                self._not_before = now + (REFUSED_SECONDS if refused else LEAST_SECONDS)
                if why != self._why:
                    _log.warning("ejection report failed; the agent tries again", reason=why)
                self._why = why

    async def _answer(self, host_ports: tuple[HostPort, ...]) -> Answer:
        """Send the report to one server after another until one accepts the report."""
        failures = dict[HostPort, EnrolmentFailure]()
        for at in self._servers.order():
            try:
                answer = await self._ask(ReportTask(at, self._directory, host_ports, self._trust_domain))
            except ApartFailed as error:
                answer = EnrolmentFailure(str(error))
            if isinstance(answer, ReportAccepted):
                self._servers.answered(at)
                return answer
            failures[at] = answer
        return combined(failures)


async def _program(telling: ReportTask) -> Answer:
    result = await apart(PROGRAM, telling, SECONDS, "the program for ejection reports")
    if isinstance(result, ReportAccepted | EnrolmentFailure):
        return result
    raise ApartFailed(f"the program for ejection reports returned an unexpected {type(result).__name__}")
