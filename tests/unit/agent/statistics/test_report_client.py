"""Tests of reports to one of several servers."""

from pathlib import Path

import pytest

from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.statistics import report_client
from meshwright.agent.statistics.report_client import ReportRefused, send_to_any
from meshwright.mesh.host_port import HostPort

A, B = HostPort("a.example", 15131), HostPort("b.example", 15131)
AWAY = ReportRefused("cannot report to a.example:15131: away")
OLD = ReportRefused("b.example:15131 answered with status 12: unknown", refused=True)
UNFIT = ReportRefused("too long", refused=True, unfit=True)


@pytest.mark.parametrize(
    ("answers", "expected", "order"),
    [
        ({A: 30, B: 40}, 30, (A, B)),
        ({A: AWAY, B: 40}, 40, (B, A)),
        ({A: OLD, B: 40}, 40, (B, A)),
        ({A: AWAY, B: OLD}, (f"{AWAY}; {OLD}", False, False), (A, B)),
        ({A: OLD, B: OLD}, (str(OLD), True, False), (A, B)),
        ({A: UNFIT, B: 40}, (str(UNFIT), True, True), (A, B)),
    ],
)
async def test_report_goes_to_the_first_server_that_accepts_it(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[HostPort, int | ReportRefused],
    expected: int | tuple[str, bool, bool],
    order: tuple[HostPort, ...],
) -> None:
    """The next report begins with the server that accepted; an unfit report goes to one server only."""

    async def send(at: HostPort, name: str, files: Path, report: bytes) -> int:
        assert (name, files, report) == ("ads.cluster.local", Path("/own"), b"report")
        answer = answers[at]
        if isinstance(answer, ReportRefused):
            raise answer
        return answer

    monkeypatch.setattr(report_client, "send", send)
    servers = ServerRotation((A, B), first=0)
    try:
        result: object = await send_to_any(servers, "ads.cluster.local", Path("/own"), b"report")
    except ReportRefused as error:
        result = (str(error), error.refused, error.unfit)
    assert (result, servers.order()) == (expected, order)
