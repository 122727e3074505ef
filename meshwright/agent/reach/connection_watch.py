"""Keeps an eye on a proxy's control plane: asks why as soon as Envoy is without it, and says it once."""

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
"""From look to look while Envoy has its control plane."""
GRACE_SECONDS: Final = 3.0
"""So long an Envoy may be without before it is asked why: one that starts is, and one whose server does."""
LONGEST_PAUSE_SECONDS: Final = 30.0

STATS_PATH: Final = (
    "/stats?filter=^(control_plane.connected_state|cluster_manager.cds.update_(success|rejected)|"
    f"cluster.{ADS_CLUSTER}.upstream_(cx_total|cx_connect_fail|rq_total|rq_pending_active))$"
)

_log = structlog.get_logger("agent.control_plane")


class Admin(Protocol):
    """What is asked of Envoy's admin interface."""

    async def text(self, path: str, method: str = "GET") -> str:
        """Return the body of an answer; raise AdminUnreachable."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How Envoy stands with its control plane.

    What it thinks, how often it tried, what it waits for, how often it was sent clusters, whatever it made
    of them: each new stream is answered with them first.
    """

    connected: bool
    tried: int
    pending: int
    updates: int

    @classmethod
    def read(cls, stats: str) -> "Counts":
        """Read the answer of STATS_PATH."""
        lines = re.findall(r"^([\w.-]+): (\d+)$", stats, re.MULTILINE)
        found = {name.rpartition(".")[2]: int(value) for name, value in lines}
        tried = ("upstream_cx_total", "upstream_cx_connect_fail", "upstream_rq_total")
        return cls(
            found.get("connected_state", 0) == 1,
            sum(found.get(each, 0) for each in tried),
            found.get("upstream_rq_pending_active", 0),
            found.get("update_success", 0) + found.get("update_rejected", 0),
        )


def has_it(now: Counts, before: Counts | None, earlier: int) -> bool:
    """Say whether Envoy has its control plane, by two looks.

    It takes itself for connected from when it begins to dial: so it must not have dialled again since, nor
    be waiting for a connection, and it must have been sent more than the `earlier` updates, which came on
    other streams: on this one it may be held.
    """
    is_open = now.connected and not now.pending and before is not None and now.tried == before.tried
    return is_open and now.updates > earlier


def on_other_streams(now: Counts, before: Counts | None, earlier: int) -> int:
    """Return how many updates Envoy had been sent before its newest stream, as far as is seen.

    Whose counts are less than they were is another Envoy.
    """
    if before is None or now.updates < before.updates or now.tried < before.tried:
        return 0
    return earlier if now.tried == before.tried else before.updates


def pause(times: int) -> float:
    """Return how long it is until the way is gone again, after so many times (from 1)."""
    return min(2.0 ** min(times, 10), LONGEST_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """How it stands: whether Envoy has its control plane, since when; if not, why, where that is known."""

    has_it: bool
    since: datetime
    why: UnreachableReason | None = None

    @property
    def words(self) -> str:
        """Return why there is none and what to do, in a sentence; nothing where that is not known."""
        return "" if self.why is None else str(self.why)


class ControlPlaneWatch:
    """Looks at one proxy's control plane; `observe` goes the way to it with the proxy's credentials."""

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
        self._told: Reason | None = None
        self._baffled = ""
        self.standing = ConnectionState(has_it=False, since=datetime.now(UTC))

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(CALM_SECONDS if self.standing.has_it else LOOK_SECONDS)

    async def look(self) -> None:
        """Look once, and go the way if that is due."""
        try:
            counts = Counts.read(await self._admin.text(STATS_PATH))
        except AdminUnreachable:  # that there is no Envoy is said by whoever keeps it
            self._before = self._without = None
            self._found(self.standing.why)
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
        self._found(self.standing.why)  # whatever comes of asking: there is none
        try:
            seen = await self._observe()
        except Exception as error:  # noqa: BLE001 - whatever it is: the proxy serves on, and is not ended for a reason's sake
            self._not_found_out(error)
            return
        self._baffled = ""
        why = unreached(seen)
        if why is not None:
            why = replace(why, do=remedy(why, seen.control_plane, place()))
        if why is None:
            self._earlier = 0  # its stream is served, although nothing was seen to come on it
        self._found(why)

    def _not_found_out(self, error: Exception) -> None:
        """Say what keeps us from knowing why, once until it is something else."""
        reason, before = " ".join(str(error).split()), self._baffled
        self._baffled = f"{type(error).__name__}: {reason}"
        if self._baffled == before:
            return
        match error:
            case CredentialsError() | OSError():
                _log.error("cannot find out why there is no control plane", reason=reason)
            case _:
                _log.exception("cannot find out why there is no control plane")

    def _found(self, why: UnreachableReason | None) -> None:
        """Say why it is, once for each reason; the words that go with it may change."""
        if why is not None and why.reason is not self._told:
            self._told = why.reason
            _log.error("no control plane", reason=why.reason.value, said=why.said, do=why.do)
        known = self.standing
        since = datetime.now(UTC) if known.has_it else known.since
        self.standing = ConnectionState(has_it=False, since=since, why=why)

    def _reached(self) -> None:
        self._without, self._baffled = None, ""
        if self.standing.has_it:
            return
        if self._told is not None:
            _log.info("the control plane is reached", was=self._told.value)
            self._told = None
        self.standing = ConnectionState(has_it=True, since=datetime.now(UTC))
