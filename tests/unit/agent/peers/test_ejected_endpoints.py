"""Tests of ejected endpoints: reading them from Envoy, and the times of reports."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import structlog

from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.peers.ejected_endpoints import CLUSTERS_PATH, STATS_PATH, ejected, has_ejected
from meshwright.agent.peers.reporting import Answer, EjectionReporter, ReportAccepted, ReportTask
from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.subprocess_call import ApartFailed
from meshwright.mesh.host_port import HostPort

AT = HostPort("10.0.0.1", 15131)
A, B = HostPort("10.0.0.7", 8080), HostPort("fd00::7", 8080)


def host(address: object, port: object = 8080, **health: object) -> dict[str, object]:
    """Return a host as `/clusters?format=json` of Envoy 1.36 shows it."""
    return {
        "address": {"socket_address": {"address": address, "port_value": port}},
        "stats": [{"name": "cx_connect_fail", "value": "5"}],
        "health_status": {"eds_health_status": "HEALTHY", **health},
        "weight": 1,
    }


OUT = {"failed_outlier_check": True}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ()),
        ({"cluster_statuses": [{"name": "xds", "host_statuses": [host("10.0.0.7")]}]}, ()),
        ({"cluster_statuses": [{"host_statuses": [host("10.0.0.7", **OUT), host("10.0.0.8")]}]}, (A,)),
        (
            {
                "cluster_statuses": [
                    {"host_statuses": [host("fd00:0:0::7", **OUT), host("10.0.0.7", **OUT)]},
                    {"host_statuses": [host("10.0.0.7", **OUT)]},
                    {"name": "empty"},
                ]
            },
            (A, B),
        ),
        (
            {
                "cluster_statuses": [
                    {"host_statuses": [{"address": {"pipe": {"path": "/x"}}, "health_status": OUT}]}
                ]
            },
            (),
        ),
        (
            {"cluster_statuses": [{"host_statuses": [host("api.example", **OUT), host(7, **OUT), 3]}, None]},
            (),
        ),
        ({"cluster_statuses": [{"host_statuses": [host("10.0.0.7", "8080", **OUT)]}]}, ()),
        ({"cluster_statuses": {}}, ()),
    ],
)
def test_ejected_hosts_are_read_once_and_sorted(
    said: Mapping[str, object], expected: tuple[HostPort, ...]
) -> None:
    """Each ejected host is listed once, in order.

    Entries without an IP address and port, and unknown formats, are skipped.
    """
    assert ejected(said) == expected


def test_gauges_of_clusters_show_whether_a_host_is_ejected() -> None:
    """A gauge above 0 in any cluster means that a host is ejected."""
    gauge = "cluster.shop/cart|8080.outlier_detection.ejections_active: "
    assert not has_ejected("")
    assert not has_ejected(f"{gauge}0\n{gauge}0\n")
    assert has_ejected(f"{gauge}0\n{gauge}12\n")


class _Admin(EnvoyAdmin):
    """Fake admin interface of an Envoy that has ejected hosts, or is unreachable."""

    def __init__(self) -> None:
        super().__init__(HostPort("127.0.0.1", 1), Path("/nowhere"))
        self.out: tuple[str, ...] = ()
        self.away = False

    async def text(self, path: str, method: str = "GET") -> str:
        """Return the gauge of ejected hosts."""
        assert (path, method) == (STATS_PATH, "GET")
        if self.away:
            raise AdminUnreachable("away")
        return f"cluster.a.outlier_detection.ejections_active: {len(self.out)}\n"

    async def json(self, path: str) -> Mapping[str, object]:
        """Return the ejected hosts.

        Fail without ejections, because the answer is long and must not be requested.
        """
        assert path == CLUSTERS_PATH
        assert self.out
        return {"cluster_statuses": [{"host_statuses": [host(item, **OUT) for item in self.out]}]}


class _Scene:
    """An ejection reporter with a fake Envoy, control plane and clock."""

    def __init__(self) -> None:
        self.admin, self.now, self.answer = _Admin(), 1000.0, ReportAccepted(60)
        self.told: list[tuple[HostPort, ...]] = []
        self.telling = EjectionReporter(
            self.admin, (AT,), Path("/own"), ask=self._ask, monotonic=lambda: self.now
        )
        self.failing: Exception | EnrolmentFailure | None = None

    async def _ask(self, telling: ReportTask) -> Answer:
        assert (telling.at, telling.directory) == (AT, Path("/own"))
        self.told.append(telling.ejected)
        if isinstance(self.failing, Exception):
            raise self.failing
        return self.failing or self.answer

    async def after(self, seconds: float, *out: str) -> list[tuple[HostPort, ...]]:
        """Return the reports made after `seconds` more seconds, with these hosts ejected."""
        self.now += seconds
        self.admin.out, self.told = out, []
        await self.telling.look()
        return self.told


async def test_ejections_are_reported_on_change_and_before_they_expire() -> None:
    """Reports are at least ten seconds apart, and repeated before the control plane forgets them.

    The end is reported once, and without ejections there is no report.
    """
    scene = _Scene()
    assert await scene.after(5) == []
    assert await scene.after(5, A.host) == [(A,)]
    assert await scene.after(5, A.host, B.host) == []
    assert await scene.after(5, A.host, B.host) == [(A, B)]
    assert await scene.after(25, A.host, B.host) == []
    assert await scene.after(5, A.host, B.host) == [(A, B)]
    scene.admin.away = True
    assert await scene.after(5) == []
    scene.admin.away = False
    assert await scene.after(5) == [()]
    assert await scene.after(100) == []


@pytest.mark.parametrize(
    ("failing", "later"),
    [
        (EnrolmentFailure("it is away", refused=True), 300),
        (EnrolmentFailure("it is away"), 10),
        (ApartFailed("it is away"), 10),
    ],
)
async def test_failed_report_is_logged_once_and_retried_later(
    failing: Exception | EnrolmentFailure, later: int
) -> None:
    """A refused report is retried after 300 s, because an older control plane does not know the method.

    Other failures are retried after 10 s.
    """
    scene = _Scene()
    scene.failing = failing
    with structlog.testing.capture_logs() as logs:
        assert await scene.after(5, A.host) == [(A,)]
        assert await scene.after(later - 1, A.host) == []
        assert await scene.after(1, A.host) == [(A,)]
    assert [log["reason"] for log in logs] == ["it is away"]
    scene.failing = None
    assert await scene.after(later, A.host) == [(A,)]


async def test_report_goes_to_the_next_server_after_a_failure() -> None:
    """The next report begins with the server that accepted the last one; the log names both failures."""
    other, asked = HostPort("127.0.0.1", 2), list[HostPort]()
    answers: dict[HostPort, Answer] = {AT: EnrolmentFailure(f"{AT} is away"), other: ReportAccepted(60)}

    async def ask(task: ReportTask) -> Answer:
        asked.append(task.at)
        return answers[task.at]

    admin, now = _Admin(), 1000.0
    reporter = EjectionReporter(admin, (AT, other), Path("/own"), ask=ask, monotonic=lambda: now)
    reporter._servers = ServerRotation((AT, other), first=0)  # the first one is random
    admin.out = (A.host,)
    await reporter.look()
    assert asked == [AT, other]
    now += 30
    await reporter.look()
    assert asked == [AT, other, other]
    answers[other], now = EnrolmentFailure(f"{other} is away"), now + 30
    with structlog.testing.capture_logs() as logs:
        await reporter.look()
    assert [log["reason"] for log in logs] == [f"{other} is away; {AT} is away"]
