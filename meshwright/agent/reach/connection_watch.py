"""Watch over a proxy's control plane, with a diagnosis and one log entry for each lost connection."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog

from meshwright.agent.credentials import CredentialsError
from meshwright.agent.envoy.admin import AdminUnreachable
from meshwright.agent.reach.observations import ReachObservation
from meshwright.agent.reach.place import place, remedy
from meshwright.agent.reach.reasons import Reason, UnreachableReason, unreached
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.envoy.bootstrap.bootstrap import ADS_CLUSTER

LOOK_SECONDS: Final = 1.0
CALM_SECONDS: Final = 5.0
"""Seconds between two checks while Envoy is connected."""
GRACE_SECONDS: Final = 3.0
"""Seconds without connection before a diagnosis, because a starting Envoy or server needs some time."""
LONGEST_PAUSE_SECONDS: Final = 30.0

STATS_PATH: Final = (
    "/stats?filter=^(control_plane.connected_state|cluster_manager.cds.update_(success|rejected)|"
    f"cluster.{ADS_CLUSTER}.upstream_(cx_total|cx_connect_fail|rq_total|rq_pending_active))$"
)

_log = structlog.get_logger("agent.control_plane")


class Admin(Protocol):
    """The part of Envoy's admin interface that the watch uses."""

    async def text(self, path: str, method: str = "GET") -> str:
        """Return the body of the answer for a path of the admin interface; raise AdminUnreachable."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Envoy's counters about the control plane.

    They are Envoy's own opinion, attempts, pending requests, and received cluster updates, accepted or not:
    every new stream is answered with clusters first.
    """

    connected: bool
    tried: int
    pending: int
    updates: int

    @classmethod
    def read(cls, stats: str) -> "Counts":
        """Parse Envoy's counters from the answer of STATS_PATH."""
        lines = re.findall(r"^([\w.-]+): (\d+)$", stats, re.MULTILINE)
        result = {name.rpartition(".")[2]: int(value) for name, value in lines}
        tried = ("upstream_cx_total", "upstream_cx_connect_fail", "upstream_rq_total")
        return cls(
            result.get("connected_state", 0) == 1,
            sum(result.get(item, 0) for item in tried),
            result.get("upstream_rq_pending_active", 0),
            result.get("update_success", 0) + result.get("update_rejected", 0),
        )


def has_it(now: Counts, before: Counts | None, earlier: int) -> bool:
    """Return whether Envoy is connected to the control plane, from two checks.

    Envoy counts itself as connected from the first attempt. Therefore three conditions must hold: Envoy did
    not try again since the last check, all requests are answered, and Envoy has received more updates than
    the `earlier` ones on other streams, because the server may hold this stream without an answer.
    """
    is_open = now.connected and not now.pending and before is not None and now.tried == before.tried
    return is_open and now.updates > earlier


def on_other_streams(now: Counts, before: Counts | None, earlier: int) -> int:
    """Return the number of updates before Envoy's newest stream, as far as observed.

    Decreased counters belong to a new Envoy.
    """
    if before is None or now.updates < before.updates or now.tried < before.tried:
        return 0
    return earlier if now.tried == before.tried else before.updates


def pause(times: int) -> float:
    """Return the seconds until the next diagnosis, after this many diagnoses (from 1)."""
    return min(2.0 ** min(times, 10), LONGEST_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class UnreachableServer:
    """A server of the control plane that a proxy does not reach, with the reason."""

    address: HostPort
    why: UnreachableReason


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """The state of the connection, since when, and the cause of a lost connection if known.

    `causes` has the cause for each server of the control plane, in the order of their addresses.
    """

    has_it: bool
    since: datetime
    causes: tuple[UnreachableServer, ...] = ()

    @property
    def words(self) -> str:
        """Return causes and remedies of a lost connection as a sentence; empty if the cause is unknown."""
        said = dict.fromkeys(f"{cause.why.clause}; {cause.why.do}" for cause in self.causes)
        return f"control plane not connected: {'; '.join(said)}" if said else ""


class ControlPlaneWatch:
    """Watches a proxy's connection to the control plane.

    `observe` makes a diagnosis of a lost connection, with an observation for each server.
    """

    def __init__(
        self,
        admin: Admin,
        observe: Callable[[], Awaitable[Sequence[ReachObservation]]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._observe = observe
        self._now = monotonic
        self._before: Counts | None = None
        self._earlier = 0
        self._without: float | None = None
        self._times = 0
        self._due = 0.0
        self._logged: dict[HostPort, Reason] = {}
        self._baffled = ""
        self.standing = ConnectionState(has_it=False, since=datetime.now(UTC))

    async def run(self) -> None:
        """Watch the connection until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(CALM_SECONDS if self.standing.has_it else LOOK_SECONDS)

    async def look(self) -> None:
        """Check the connection once, and make a diagnosis of a lost one if due."""
        try:
            counts = Counts.read(await self._admin.text(STATS_PATH))
        except AdminUnreachable:  # the supervisor reports a missing Envoy
            self._before = self._without = None
            self._record_causes(self.standing.causes)
            return
        self._earlier = on_other_streams(counts, self._before, self._earlier)
        having, self._before = has_it(counts, self._before, self._earlier), counts
        now = self._now()
        if having:
            self._reached()
            return
        if self._without is None:
            self._without, self._times, self._due = now, 0, now + GRACE_SECONDS
        if now >= self._due:
            self._times += 1
            await self._ask()
            self._due = self._now() + pause(self._times)

    async def _ask(self) -> None:
        self._record_causes(self.standing.causes)  # whatever comes of asking: there is none
        try:
            observations = await self._observe()
        except Exception as error:  # noqa: BLE001 - whatever it is: the proxy serves on, and is not ended for a reason's sake
            self._log_failed_diagnosis(error)
            return
        self._baffled = ""
        causes = tuple(_causes(observations))
        if len(causes) < len(observations):
            # The stream is served by a server in reach, although no update was observed on the stream.
            self._earlier, causes = 0, ()
        self._record_causes(causes)

    def _log_failed_diagnosis(self, error: Exception) -> None:
        """Log why a diagnosis failed, once until the failure changes."""
        reason, before = " ".join(str(error).split()), self._baffled
        self._baffled = f"{type(error).__name__}: {reason}"
        if self._baffled == before:
            return
        match error:
            case CredentialsError() | OSError():
                _log.error("diagnosis of the control plane connection failed", reason=reason)
            case _:
                _log.exception("diagnosis of the control plane connection failed")

    def _record_causes(self, causes: tuple[UnreachableServer, ...]) -> None:
        """Record the causes of a lost connection.

        Each new reason of a server is logged once, because its details may change at each diagnosis.
        """
        for cause in causes:
            why = cause.why
            if self._logged.get(cause.address) is not why.reason:
                self._logged[cause.address] = why.reason
                _log.error("control plane not connected", reason=why.reason.value, said=why.clause, do=why.do)
        known = self.standing
        since = datetime.now(UTC) if known.has_it else known.since
        self.standing = ConnectionState(has_it=False, since=since, causes=causes)

    def _reached(self) -> None:
        self._without, self._baffled = None, ""
        if self.standing.has_it:
            return
        if self._logged:
            was = ", ".join(dict.fromkeys(reason.value for reason in self._logged.values()))
            _log.info("control plane connected", was=was)
            self._logged.clear()
        self.standing = ConnectionState(has_it=True, since=datetime.now(UTC))


def _causes(observations: Sequence[ReachObservation]) -> Iterator[UnreachableServer]:
    for seen in observations:
        if (why := unreached(seen)) is not None:
            do = remedy(why, seen.control_plane, place())
            yield UnreachableServer(seen.control_plane, replace(why, do=do))
