"""Whom Envoy has ejected, read from what it says, and when that is told."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import structlog

from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.peers.ejected_endpoints import CLUSTERS_PATH, STATS_PATH, ejected, has_ejected
from meshwright.agent.peers.reporting import Answer, EjectionReporter, ReportAccepted, ReportTask
from meshwright.agent.subprocess_call import ApartFailed
from meshwright.mesh.host_port import HostPort

AT = HostPort("10.0.0.1", 15131)
A, B = HostPort("10.0.0.7", 8080), HostPort("fd00::7", 8080)


def host(address: object, port: object = 8080, **health: object) -> dict[str, object]:
    """Return a host as `/clusters?format=json` of Envoy 1.36 has it."""
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
def test_who_is_ejected(said: Mapping[str, object], expected: tuple[HostPort, ...]) -> None:
    """Each once, in order; what has no address and port, or is no answer of Envoy's, is nobody."""
    assert ejected(said) == expected


def test_whether_anybody_is() -> None:
    """By the gauges of clusters."""
    gauge = "cluster.shop/cart|8080.outlier_detection.ejections_active: "
    assert not has_ejected("")
    assert not has_ejected(f"{gauge}0\n{gauge}0\n")
    assert has_ejected(f"{gauge}0\n{gauge}12\n")


class _Admin(EnvoyAdmin):
    """An Envoy that has ejected some, or is away."""

    def __init__(self) -> None:
        super().__init__(HostPort("127.0.0.1", 1), Path("/nowhere"))
        self.out: tuple[str, ...] = ()
        self.away = False

    async def text(self, path: str, method: str = "GET") -> str:
        """Answer as told."""
        assert (path, method) == (STATS_PATH, "GET")
        if self.away:
            raise AdminUnreachable("away")
        return f"cluster.a.outlier_detection.ejections_active: {len(self.out)}\n"

    async def json(self, path: str) -> Mapping[str, object]:
        """Answer as told; it is a long one, and not asked for without need."""
        assert path == CLUSTERS_PATH
        assert self.out
        return {"cluster_statuses": [{"host_statuses": [host(each, **OUT) for each in self.out]}]}


class _Scene:
    """Somebody who tells, with a clock of its own."""

    def __init__(self) -> None:
        self.admin, self.now, self.answer = _Admin(), 1000.0, ReportAccepted(60)
        self.told: list[tuple[HostPort, ...]] = []
        self.telling = EjectionReporter(
            self.admin, AT, Path("/own"), ask=self._ask, monotonic=lambda: self.now
        )
        self.failing: Exception | EnrolmentFailure | None = None

    async def _ask(self, telling: ReportTask) -> Answer:
        assert (telling.at, telling.directory) == (AT, Path("/own"))
        self.told.append(telling.ejected)
        if isinstance(self.failing, Exception):
            raise self.failing
        return self.failing or self.answer

    async def after(self, seconds: float, *out: str) -> list[tuple[HostPort, ...]]:
        """Return what is told when so much time has gone, and these are ejected."""
        self.now += seconds
        self.admin.out, self.told = out, []
        await self.telling.look()
        return self.told


async def test_it_is_told_as_it_changes_and_before_it_is_forgotten() -> None:
    """Nothing where nobody is ejected; not more often than every ten seconds; the end of it once."""
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
async def test_who_cannot_tell_says_so_once_and_tries_later(
    failing: Exception | EnrolmentFailure, later: int
) -> None:
    """An older control plane does not know the method: it is not asked every few seconds for ever."""
    scene = _Scene()
    scene.failing = failing
    with structlog.testing.capture_logs() as logs:
        assert await scene.after(5, A.host) == [(A,)]
        assert await scene.after(later - 1, A.host) == []
        assert await scene.after(1, A.host) == [(A,)]
    assert [each["reason"] for each in logs] == ["it is away"]
    scene.failing = None
    assert await scene.after(later, A.host) == [(A,)]
