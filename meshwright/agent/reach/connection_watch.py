"""Watch over a proxy's control plane, with a diagnosis and one log entry for each lost connection."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog

from meshwright.agent.credentials import CredentialsError
from meshwright.agent.envoy.admin import AdminUnreachable
from meshwright.agent.reach.observations import ReachObservation
from meshwright.agent.reach.place import place, remedy
from meshwright.agent.reach.reasons import Reason, UnreachableReason, unreached
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
class ConnectionState:
    """The state of the connection, since when, and the cause of a lost connection if known."""

    has_it: bool
    since: datetime
    why: UnreachableReason | None = None

    @property
    def words(self) -> str:
        """Return cause and remedy of a lost connection as a sentence; empty if the cause is unknown."""
        return "" if self.why is None else str(self.why)


class ControlPlaneWatch:
    """Watches a proxy's connection to the control plane; `observe` makes a diagnosis of a lost one."""

    def __init__(
        self,
        admin: Admin,
        observe: Callable[[], Awaitable[ReachObservation]],
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
        self._logged_reason: Reason | None = None
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
            self._record_cause(self.standing.why)
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
        self._record_cause(self.standing.why)  # whatever comes of asking: there is none
        try:
            seen = await self._observe()
        except Exception as error:  # noqa: BLE001 - whatever it is: the proxy serves on, and is not ended for a reason's sake
            self._log_failed_diagnosis(error)
            return
        self._baffled = ""
        why = unreached(seen)
        if why is not None:
            why = replace(why, do=remedy(why, seen.control_plane, place()))
        if why is None:
            self._earlier = 0  # the stream is served, although no update was observed on it
        self._record_cause(why)

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

    def _record_cause(self, why: UnreachableReason | None) -> None:
        """Record the cause of a lost connection, and log each new reason once; its details may change."""
        if why is not None and why.reason is not self._logged_reason:
            self._logged_reason = why.reason
            _log.error("control plane not connected", reason=why.reason.value, said=why.clause, do=why.do)
        known = self.standing
        since = datetime.now(UTC) if known.has_it else known.since
        self.standing = ConnectionState(has_it=False, since=since, why=why)

    def _reached(self) -> None:
        self._without, self._baffled = None, ""
        if self.standing.has_it:
            return
        if self._logged_reason is not None:
            _log.info("control plane connected", was=self._logged_reason.value)
            self._logged_reason = None
        self.standing = ConnectionState(has_it=True, since=datetime.now(UTC))
