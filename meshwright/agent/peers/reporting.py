"""Tells the control plane whom the proxy has ejected: when that changes, and before it would be forgotten.

Where nothing is ejected nothing is said. Each time a process does it that ends
(`meshwright.agent.subprocess_call`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.peers.ejected_endpoints import CLUSTERS_PATH, STATS_PATH, ejected, has_ejected
from meshwright.agent.subprocess_call import ApartFailed, apart
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain

PROGRAM: Final = "meshwright.agent.peers.program"
LOOK_SECONDS: Final = 5.0
SECONDS: Final = 60.0
LEAST_SECONDS: Final = 10.0
"""Between two times that something is told."""
REFUSED_SECONDS: Final = 300.0
"""Who does not want to be told, as an older control plane, is asked again after so long."""

_log = structlog.get_logger("agent.peers")


@dataclass(frozen=True, slots=True)
class ReportTask:
    """What the program is to tell, and to whom, with the directory of the proxy's files.

    `trust_domain` is the mesh's, where it was told.
    """

    at: HostPort
    directory: Path
    ejected: tuple[HostPort, ...]
    trust_domain: TrustDomain | None = None


@dataclass(frozen=True, slots=True)
class ReportAccepted:
    """It was told, and holds for so many seconds."""

    holds: int


Answer = ReportAccepted | EnrolmentFailure


class EjectionReporter:
    """What one proxy has ejected; `at` is the control plane's renewal port.

    `told` is the mesh's trust domain, as an option says it.
    """

    def __init__(
        self,
        admin: EnvoyAdmin,
        at: HostPort,
        directory: Path,
        *,
        told: TrustDomain | None = None,
        ask: Callable[[ReportTask], Awaitable[Answer]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._at = at
        self._directory = directory
        self._trust_domain = told
        self._ask = ask or _program
        self._monotonic = monotonic
        self._told: tuple[HostPort, ...] = ()
        self._again = 0.0
        self._not_before = 0.0
        self._why = ""

    async def run(self) -> None:
        """Look and tell for as long as the agent runs."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Tell whom Envoy has ejected, if that is to be said; an Envoy that is not there ejects nobody."""
        try:
            found = await self._ejected()
        except AdminUnreachable:
            return
        now = self._monotonic()
        is_due = found != self._told or (found and now >= self._again)
        if is_due and now >= self._not_before:
            await self._tell(found, now)

    async def _ejected(self) -> tuple[HostPort, ...]:
        if not has_ejected(await self._admin.text(STATS_PATH)):
            return ()
        return ejected(await self._admin.json(CLUSTERS_PATH))

    async def _tell(self, found: tuple[HostPort, ...], now: float) -> None:
        try:
            answer = await self._ask(ReportTask(self._at, self._directory, found, self._trust_domain))
        except ApartFailed as error:
            answer = EnrolmentFailure(str(error))
        match answer:
            case ReportAccepted(holds):
                self._told, self._why = found, ""
                self._again, self._not_before = now + holds / 2, now + LEAST_SECONDS
            case EnrolmentFailure(why, refused):
                self._not_before = now + (REFUSED_SECONDS if refused else LEAST_SECONDS)
                if why != self._why:
                    _log.warning("the control plane is not told who is ejected", reason=why)
                self._why = why


async def _program(telling: ReportTask) -> Answer:
    found = await apart(PROGRAM, telling, SECONDS, "the program that tells who is ejected")
    if isinstance(found, ReportAccepted | EnrolmentFailure):
        return found
    raise ApartFailed(f"the program that tells who is ejected answered a {type(found).__name__}")
