"""Tests of the watch of the control-plane connection: its state, its diagnoses and its log lines."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from meshwright.agent.credentials import CredentialsError
from meshwright.agent.envoy.admin import AdminUnreachable
from meshwright.agent.reach.connection_watch import (
    GRACE_SECONDS,
    ControlPlaneWatch,
    Counts,
    has_it,
    on_other_streams,
    pause,
)
from meshwright.agent.reach.observations import (
    PortClosed,
    PresentedCertificate,
    ReachObservation,
    ServerAnswer,
    Way,
)
from meshwright.mesh.host_port import HostPort

UNEXPLAINED = "diagnosis of the control plane connection failed"
HAS_IT = Counts(connected=True, tried=3, pending=0, updates=2)
STATS = """\
cluster.meshwright-ads.upstream_cx_connect_fail: 1
cluster.meshwright-ads.upstream_cx_total: 1
cluster.meshwright-ads.upstream_rq_pending_active: 0
cluster.meshwright-ads.upstream_rq_total: 1
cluster_manager.cds.update_rejected: 1
cluster_manager.cds.update_success: 1
control_plane.connected_state: 1
"""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHOWN = PresentedCertificate("u.s.n", "1", NOW, NOW + timedelta(days=1))


def test_counts_are_read_from_envoy_s_statistics() -> None:
    """The counts are read from Envoy's text; an Envoy that has just started has none."""
    assert Counts.read(STATS) == HAS_IT
    assert Counts.read("") == Counts(connected=False, tried=0, pending=0, updates=0)


@pytest.mark.parametrize(
    ("now", "before", "earlier", "expected"),
    [
        (HAS_IT, HAS_IT, 0, True),
        (HAS_IT, HAS_IT, 1, True),
        (HAS_IT, HAS_IT, 2, False),
        (HAS_IT, None, 0, False),
        (HAS_IT, replace(HAS_IT, tried=2), 0, False),
        (replace(HAS_IT, pending=1), replace(HAS_IT, pending=1), 0, False),
        (replace(HAS_IT, connected=False), HAS_IT, 0, False),
        (replace(HAS_IT, updates=0), replace(HAS_IT, updates=0), 0, False),
    ],
)
def test_proxy_is_connected_only_if_its_latest_stream_is_served(
    now: Counts, before: Counts | None, earlier: int, *, expected: bool
) -> None:
    """A proxy that dials, has just dialled, or is held on a new stream does not count as connected."""
    assert has_it(now, before, earlier) is expected


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (HAS_IT, None, 0),
        (replace(HAS_IT, updates=9), HAS_IT, 1),
        (replace(HAS_IT, tried=4), HAS_IT, 2),
        (replace(HAS_IT, tried=4, updates=3), HAS_IT, 2),
        (replace(HAS_IT, updates=1), HAS_IT, 0),
        (replace(HAS_IT, tried=1), HAS_IT, 0),
    ],
)
def test_updates_of_earlier_streams_are_counted(now: Counts, before: Counts | None, expected: int) -> None:
    """Updates that arrived before a new dial belong to earlier streams; another Envoy starts from zero."""
    assert on_other_streams(now, before, 1) == expected


def test_pauses_between_diagnoses_double_up_to_30_seconds() -> None:
    """The pauses double from 2 s up to 30 s."""
    assert [pause(times) for times in (1, 2, 3, 5, 100)] == [2, 4, 8, 30, 30]


class _Story:
    """A connection watch with a fake Envoy, connection and clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.stats: str | None = ""
        self.way: Way = PortClosed("127.0.0.1:1")
        self.other_ways: tuple[Way, ...] = ()
        self.asked = 0
        self.failing: Exception | None = None
        self.watch = ControlPlaneWatch(self, self._observe, lambda: self.now)

    async def text(self, path: str, method: str = "GET") -> str:
        """Return the statistics, or raise AdminUnreachable."""
        del path, method
        if self.stats is None:
            raise AdminUnreachable("gone")
        return self.stats

    async def _observe(self) -> tuple[ReachObservation, ...]:
        self.asked += 1
        if self.failing is not None:
            raise self.failing
        ways = (self.way, *self.other_ways)
        return tuple(
            ReachObservation(HostPort("127.0.0.1", port), SHOWN, NOW, way) for port, way in enumerate(ways, 1)
        )

    async def look(self, *, after: float = 0.0) -> None:
        """Advance the clock, and look."""
        self.now += after
        await self.watch.look()


async def test_each_reason_is_logged_once() -> None:
    """A reason is logged after the grace period, when it changes and when it ends.

    Diagnoses become less frequent.
    """
    story = _Story()
    with capture_logs() as answer:
        await story.look()
        assert story.asked == 0
        await story.look(after=GRACE_SECONDS)
        await story.look(after=pause(1))
        await story.look(after=pause(2) - 0.1)
        assert story.asked == 2
        assert [item["reason"] for item in answer] == ["port-closed"]
        story.way = ServerAnswer("PERMISSION_DENIED", "refused", "revoked")
        await story.look(after=0.2)
        assert [item["reason"] for item in answer] == ["port-closed", "certificate-revoked"]
        assert "certificate 1 was revoked" in story.watch.standing.words
        story.stats = STATS
        await story.look()
        first = story.watch.standing.has_it
        await story.look()
    assert (first, story.watch.standing.has_it) == (False, True)
    assert story.watch.standing.words == ""
    assert (answer[-1]["event"], answer[-1]["was"]) == ("control plane connected", "certificate-revoked")


async def test_each_server_has_a_reason_of_its_own() -> None:
    """Each new reason of a server is logged once; with a server in reach there is no cause."""
    story = _Story()
    story.other_ways = (ServerAnswer("PERMISSION_DENIED", "refused", "revoked"),)
    with capture_logs() as logs:
        await story.look()
        await story.look(after=GRACE_SECONDS)
        assert [(cause.address.port, cause.why.reason.value) for cause in story.watch.standing.causes] == [
            (1, "port-closed"),
            (2, "certificate-revoked"),
        ]
        words = story.watch.standing.words
        assert words.startswith("control plane not connected: no server listens at 127.0.0.1:1; ")
        assert "; this proxy's certificate 1 was revoked; " in words
        story.other_ways = (PortClosed("127.0.0.1:2"),)
        await story.look(after=pause(1))
        await story.look(after=pause(2))
        assert [item["said"].partition(" was")[0] for item in logs] == [
            "no server listens at 127.0.0.1:1",
            "this proxy's certificate 1",
            "no server listens at 127.0.0.1:2",
        ]
        story.other_ways = (ServerAnswer("OK"),)
        await story.look(after=pause(3))
        assert (story.watch.standing.has_it, story.watch.standing.causes) == (False, ())
        story.stats = STATS
        await story.look()
        await story.look()
    assert story.watch.standing.has_it
    assert (logs[-1]["event"], logs[-1]["was"]) == ("control plane connected", "port-closed")


async def test_proxy_held_on_a_new_stream_is_not_connected() -> None:
    """Updates of earlier streams do not count for a held proxy.

    It is connected again when the control plane answers that it serves.
    """
    story = _Story()
    story.stats = STATS
    await story.look()
    await story.look()
    assert story.watch.standing.has_it
    story.stats = STATS.replace("rq_total: 1", "rq_total: 2")
    story.way = ServerAnswer("UNAVAILABLE", "held", "workload-unknown")
    await story.look()
    await story.look(after=GRACE_SECONDS)
    assert "has no workload for u.s.n" in story.watch.standing.words
    story.way = ServerAnswer("OK")
    await story.look(after=pause(1))
    await story.look()
    assert (story.watch.standing.has_it, story.watch.standing.words) == (True, "")


async def test_failed_diagnosis_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is logged with its traceback, and the next diagnosis is made when it is due."""
    story = _Story()
    observe = story._observe

    async def fail() -> ReachObservation:
        story.asked += 1
        raise LookupError("nobody has foreseen this")

    monkeypatch.setattr(story.watch, "_observe", fail)
    with capture_logs() as answer:
        await story.look()
        await story.look(after=GRACE_SECONDS)
        monkeypatch.setattr(story.watch, "_observe", observe)
        await story.look(after=pause(1))
    first, second = answer
    assert (first["event"], first["exc_info"]) == (UNEXPLAINED, True)
    assert second["reason"] == "port-closed"


async def test_failure_of_the_diagnosis_is_logged_once() -> None:
    """The same failure is logged again only after an answer or a connection in between.

    A failure of another type is logged at once.
    """
    story, said_then = _Story(), list[int]()
    story.failing = CredentialsError("no key")
    with capture_logs() as answer:
        await story.look()
        for failing in (story.failing, story.failing, LookupError("no key"), LookupError("no key"), None):
            story.failing = failing
            await story.look(after=100)
            said_then.append(len(answer))
        story.failing = CredentialsError("no key")
        await story.look(after=100)
        await story.look(after=100)
        said_then.append(len(answer))
        story.stats = STATS
        await story.look()
        await story.look()
        story.stats = STATS.replace("connected_state: 1", "connected_state: 0")
        await story.look()
        await story.look(after=GRACE_SECONDS)
    assert said_then == [1, 1, 2, 2, 3, 4]
    assert [item["event"] for item in answer] == [
        UNEXPLAINED,
        UNEXPLAINED,
        "control plane not connected",
        UNEXPLAINED,
        "control plane connected",
        UNEXPLAINED,
    ]


async def test_short_disconnection_is_not_diagnosed_or_logged() -> None:
    """A disconnection within the grace period, for example a restart, causes no diagnosis and no log line."""
    story = _Story()
    story.stats = STATS
    with capture_logs() as answer:
        await story.look()
        await story.look()
        assert story.watch.standing.has_it
        story.stats = STATS.replace("state: 1", "state: 0")
        await story.look(after=1)
        story.stats = None
        await story.look(after=GRACE_SECONDS)
        story.stats = STATS
        await story.look(after=1)
        await story.look(after=1)
    assert (story.asked, answer) == (0, [])


async def test_connection_is_lost_without_usable_files_or_envoy() -> None:
    """A former connection does not count if the diagnosis fails or Envoy does not answer."""
    for lost in ("files", "Envoy"):
        story = _Story()
        story.stats = STATS
        await story.look()
        await story.look()
        assert story.watch.standing.has_it
        if lost == "Envoy":
            story.stats = None
            await story.look()
        else:
            story.failing = CredentialsError("no key")
            story.stats = STATS.replace("connected_state: 1", "connected_state: 0")
            await story.look()
            await story.look(after=GRACE_SECONDS)
        assert not story.watch.standing.has_it, lost
