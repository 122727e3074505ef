"""Tests of the reasons for a missing control-plane connection, and of their texts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.agent.reach.observations import (
    ClosedAfterHandshake,
    MisnamedServer,
    NoRoute,
    PresentedCertificate,
    ReachObservation,
    ServerAnswer,
    UntrustedServer,
    Way,
)
from meshwright.agent.reach.reasons import Reason, unreached
from meshwright.mesh.host_port import HostPort

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
SHOWN = PresentedCertificate("one.store.shop", "abc", NOW - timedelta(days=1), NOW + timedelta(days=1))


def _seen(way: Way, now: datetime = NOW) -> ReachObservation:
    return ReachObservation(HostPort("control.example", 15128), SHOWN, now, way)


def test_every_reason_is_documented() -> None:
    """Each reason is in docs/start/vm.md."""
    text = (Path(__file__).parents[4] / "docs" / "start" / "vm.md").read_text()
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in text] == []


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (timedelta(days=1, seconds=5), "5 s ago"),
        (timedelta(days=1, minutes=61), "1 h 1 min ago"),
        (timedelta(days=4, hours=2, minutes=3), "3 d 2 h ago"),
    ],
)
def test_age_of_an_expired_certificate_has_at_most_two_units(late: timedelta, said: str) -> None:
    """The time since expiry is given in its largest unit and the next one."""
    why = unreached(_seen(ClosedAfterHandshake(), NOW + late))
    assert why is not None
    assert (why.reason, said in why.clause) == (Reason.EXPIRED, True), why


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ServerAnswer("OK"), None),
        (ServerAnswer("NOT_FOUND", "unknown service"), None),
        (ServerAnswer("PERMISSION_DENIED", "refused"), Reason.REFUSED),
        (ServerAnswer("PERMISSION_DENIED", "refused", "expired"), Reason.EXPIRED),
        (ServerAnswer("PERMISSION_DENIED", "refused", "not_yet_valid"), Reason.NOT_YET_VALID),
        (
            ServerAnswer(
                "UNAVAILABLE", "the configuration of this proxy is not ready yet", "sources-not-read"
            ),
            Reason.NOTHING_TO_SERVE,
        ),
        (
            ServerAnswer(
                "UNAVAILABLE", "the configuration of this proxy is not ready yet", "translation-failed"
            ),
            Reason.NOT_TRANSLATED,
        ),
        (ServerAnswer("UNAVAILABLE", "connection reset"), Reason.NOT_SERVING),
        (ServerAnswer("RESOURCE_EXHAUSTED", "too many streams: try again later"), Reason.BUSY),
        (ServerAnswer("UNIMPLEMENTED"), Reason.ANOTHER_SERVICE),
    ],
)
def test_server_answer_has_a_reason(answer: ServerAnswer, reason: Reason | None) -> None:
    """Statuses and details map to reasons.

    A server that answers NOT_FOUND to the question serves the proxy.
    """
    why = unreached(_seen(answer))
    assert (None if why is None else why.reason) is reason


def test_name_is_shown_with_its_address() -> None:
    """The message has the resolved address beside the configured name."""
    why = unreached(_seen(NoRoute("192.0.2.1:15128", "No route to host")))
    text = "there is no route to control.example:15128, which is 192.0.2.1:15128, (No route to host)"
    assert str(why).startswith(f"control plane not connected: {text}; ")


def test_clock_is_compared_only_with_a_server_that_sends_its_date() -> None:
    """The clock's difference is known only if the answer contains the server's date."""
    assert _seen(ServerAnswer("OK", date=NOW - timedelta(hours=1))).clock_ahead == timedelta(hours=1)
    assert _seen(ServerAnswer("OK")).clock_ahead is None
    assert _seen(ClosedAfterHandshake()).clock_ahead is None


@pytest.mark.parametrize("name", ["\x1b[2Jours", "a\nok", "\u202egnp", "x" * 1_000_000])
def test_names_chosen_by_a_server_are_shown_safely(name: str) -> None:
    """Names in a certificate cannot contain control characters or newlines, and long ones are cut."""
    for way in (UntrustedServer((name,) * 9, "said"), MisnamedServer((name,) * 9, "expected")):
        text = str(unreached(_seen(way)))
        assert text.isprintable()
        assert len(text) < 1000
