"""Tests of the agent's status as JSON and as text."""

from datetime import UTC, datetime

from meshwright.agent.reach.connection_watch import ConnectionState, UnreachableServer
from meshwright.agent.reach.reasons import Reason, UnreachableReason
from meshwright.agent.status.description import described, lines
from meshwright.mesh.host_port import HostPort

A, B = HostPort("a.example", 15128), HostPort("fd00::5", 15128)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
AWAY = UnreachableReason(Reason.PORT_CLOSED, "no server listens at a.example:15128", "start it")
REVOKED = UnreachableReason(Reason.REVOKED, "this proxy's certificate 1 was revoked", "issue a new one")


def test_status_has_the_reason_of_each_server() -> None:
    """The fields of the control plane are about the first server out of reach, `servers` about each."""
    state = ConnectionState(
        has_it=False, since=SINCE, causes=(UnreachableServer(A, AWAY), UnreachableServer(B, REVOKED))
    )
    status = described((A, B), (), (7,), None, state)
    first = {"reason": "port-closed", "said": AWAY.clause, "do": "start it"}
    second = {"reason": "certificate-revoked", "said": REVOKED.clause, "do": "issue a new one"}
    assert status["control_plane"] == {
        "address": "a.example:15128,[fd00::5]:15128",
        "reached": False,
        "since": "2026-01-01T00:00:00Z",
        **first,
        "servers": [
            {"address": "a.example:15128", **first},
            {"address": "[fd00::5]:15128", **second},
        ],
    }
    assert list(lines(status))[3:] == [
        "control plane  a.example:15128,[fd00::5]:15128 is not reached since 2026-01-01T00:00:00Z",
        "               port-closed: no server listens at a.example:15128",
        "               start it",
        "               certificate-revoked: this proxy's certificate 1 was revoked",
        "               issue a new one",
    ]


def test_status_of_a_connected_proxy_has_no_reason() -> None:
    """Every server is listed, without a reason; an agent before the list of servers is shown alike."""
    status = described((A, B), (), (7,), None, ConnectionState(has_it=True, since=SINCE))
    none = {"reason": None, "said": "", "do": ""}
    plane = status["control_plane"]
    assert isinstance(plane, dict)
    assert plane["servers"] == [{"address": str(at), **none} for at in (A, B)]
    text = list(lines(status))
    del plane["servers"]
    assert list(lines(status)) == text
    plane |= {"reason": "port-closed", "said": AWAY.clause, "do": "start it"}
    assert list(lines(status))[-2:] == [
        "               port-closed: " + AWAY.clause,
        "               start it",
    ]
