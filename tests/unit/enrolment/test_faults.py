"""What strangers at the enrolment ports can make the control plane log."""

import structlog

from certs.errors import IssuerError
from meshwright.enrolment.faults import Faults
from meshwright.enrolment.proofs.contract import ProofPending, ProofUndecided


async def test_a_flood_of_connections_is_a_line_per_cause_and_a_count() -> None:
    """A connection that is ended for what it cost gives no line of its own."""
    faults = Faults()
    with structlog.testing.capture_logs() as logs:
        for number in range(1000):
            faults.ended(f"10.0.0.1:{number}", "idle-too-long" if number % 2 else "too-many-idle")
        faults.flush()
    said = [(each["event"], each["cause"], each["count"]) for each in logs]
    assert said == [
        ("enrolment connections closed by the server", "too-many-idle", 1),
        ("enrolment connections closed by the server", "idle-too-long", 1),
        ("enrolment connections closed by the server", "too-many-idle", 499),
        ("enrolment connections closed by the server", "idle-too-long", 499),
    ]


async def test_proofs_that_nobody_can_judge_are_a_line_per_kind() -> None:
    """While an API server is away, each stranger with a token would otherwise write a line."""
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
    assert [each["event"] for each in logs[:4]] == [
        "proof cannot be verified now",
        "join postponed",
        "certificate signing failed",
        "request failed",
    ]
    assert {each["what"]: each["count"] for each in logs[4:]} == dict.fromkeys(
        (
            "proof cannot be verified now",
            "join postponed",
            "certificate signing failed",
            "request failed: RuntimeError",
        ),
        99,
    )
