"""Tests of failed handshakes: their reason in gRPC's log lines, and summaries in our log."""

from pathlib import Path

import pytest

from meshwright.controller.process.handshakes import (
    SAID_SECONDS,
    FailedHandshake,
    FailedHandshakes,
    Failure,
    FailureSummary,
    failed_handshake,
)

START = "Handshake failed with error SSL_ERROR_SSL: error:"
VERIFY = "1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: "
CONTEXT = ": Invalid certificate verification context"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"{START}{VERIFY}certificate has expired", Failure.EXPIRED),
        (f"{START}{VERIFY}certificate is not yet valid", Failure.NOT_YET_VALID),
        (f"{START}{VERIFY}unable to get local issuer certificate", Failure.ANOTHER_CA),
        (f"{START}{VERIFY}unsupported certificate purpose", Failure.OTHER),
        (
            f"{START}100000c0:SSL routines:OPENSSL_internal:PEER_DID_NOT_RETURN_A_CERTIFICATE{CONTEXT}",
            Failure.NO_CERTIFICATE,
        ),
        (f"{START}1000009c:SSL routines:OPENSSL_internal:HTTP_REQUEST{CONTEXT}", Failure.NO_TLS),
        (f"{START}10000070:SSL routines:OPENSSL_internal:BAD_PACKET_LENGTH{CONTEXT}", Failure.OTHER),
        ("Handshake failed with error SSL_ERROR_SYSCALL", Failure.OTHER),
        ("TSI handshake shutdown", None),
    ],
)
def test_reason_of_a_failed_handshake_is_read_from_boringssl_s_error(line: str, why: Failure | None) -> None:
    """Known errors have a reason, and unknown ones are `OTHER` with the error's text.

    Other lines are ignored.
    """
    result = failed_handshake(line)
    assert (None if result is None else result.why) is why
    assert result is None or result.message


def test_first_failure_of_a_reason_is_logged_at_once_and_later_ones_together() -> None:
    """A flood of connections causes few log lines, and each failure is counted once."""
    failed = FailedHandshakes()
    first, other = FailedHandshake(Failure.EXPIRED, "a"), FailedHandshake(Failure.NO_TLS, "b")
    failed.note(first)
    assert failed.due(0.0) == (FailureSummary(first, 1),)
    for _ in range(3):
        failed.note(first)
    failed.note(other)
    assert failed.due(1.0) == (FailureSummary(other, 1),)
    assert failed.due(SAID_SECONDS) == (FailureSummary(first, 3),)
    assert failed.due(100.0) == ()
    assert failed.counted() == {Failure.EXPIRED: 4, Failure.NO_TLS: 1}
    assert failed.counted() == {}


def test_every_handshake_failure_is_documented() -> None:
    """Each reason is in docs/operate/operations.md."""
    text = (Path(__file__).parents[4] / "docs" / "operate" / "operations.md").read_text()
    assert [failure.value for failure in Failure if f"`{failure.value}`" not in text] == []
