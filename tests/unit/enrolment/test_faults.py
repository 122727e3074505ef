"""Tests of the log lines that strangers at the enrolment ports can cause."""

import structlog

from certs.errors import IssuerError
from meshwright.enrolment.faults import Faults
from meshwright.enrolment.proofs.contract import ProofPending, ProofUndecided


async def test_flood_of_ended_connections_is_logged_once_per_cause_with_a_count() -> None:
    """The first connection of each cause is logged at once, the other 499 as a count."""
    faults = Faults()
    with structlog.testing.capture_logs() as logs:
        for number in range(1000):
            faults.ended(f"10.0.0.1:{number}", "idle-too-long" if number % 2 else "too-many-idle")
        faults.flush()
    answer = [(log["event"], log["cause"], log["count"]) for log in logs]
    assert answer == [
        ("enrolment connections closed by the server", "too-many-idle", 1),
        ("enrolment connections closed by the server", "idle-too-long", 1),
        ("enrolment connections closed by the server", "too-many-idle", 499),
        ("enrolment connections closed by the server", "idle-too-long", 499),
    ]


async def test_failures_of_requests_are_logged_once_per_kind_with_a_count() -> None:
    """Otherwise each stranger with a token would write a line while the API server is unavailable."""
    faults = Faults()
    with structlog.testing.capture_logs() as logs:
        for _ in range(100):
            for error in (
                ProofUndecided("away"),
                ProofPending("soon"),
                IssuerError("no disk"),
                RuntimeError("ours"),
            ):
                faults.failed(error)
        faults.flush()
    assert [log["event"] for log in logs[:4]] == [
        "proof cannot be verified now",
        "join postponed",
        "certificate signing failed",
        "request failed",
    ]
    assert {log["what"]: log["count"] for log in logs[4:]} == dict.fromkeys(
        (
            "proof cannot be verified now",
            "join postponed",
            "certificate signing failed",
            "request failed: RuntimeError",
        ),
        99,
    )
