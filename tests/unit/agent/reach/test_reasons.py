"""The vocabulary of reasons: all of them documented, the clock's difference in words people use."""

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
    """In the one table that there is of them."""
    text = (Path(__file__).parents[4] / "docs" / "vm.md").read_text()
    assert [each.value for each in Reason if f"`{each.value}`" not in text] == []


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (timedelta(days=1, seconds=5), "5 s ago"),
        (timedelta(days=1, minutes=61), "1 h 1 min ago"),
        (timedelta(days=4, hours=2, minutes=3), "3 d 2 h ago"),
    ],
)
def test_by_how_much_a_certificate_has_expired(late: timedelta, said: str) -> None:
    """In the greatest unit that there is of it and the next."""
    why = unreached(_seen(ClosedAfterHandshake(), NOW + late))
    assert why is not None
    assert (why.reason, said in why.said) == (Reason.EXPIRED, True), why


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
def test_what_an_answer_means(answer: ServerAnswer, reason: Reason | None) -> None:
    """Statuses and words of ours; a server that knows neither the question nor trailers serves."""
    why = unreached(_seen(answer))
    assert (None if why is None else why.reason) is reason


def test_a_name_is_said_with_its_address() -> None:
    """What was dialled is not what was typed."""
    why = unreached(_seen(NoRoute("192.0.2.1:15128", "No route to host")))
    said = "there is no route to control.example:15128, which is 192.0.2.1:15128, (No route to host)"
    assert str(why).startswith(f"control plane not connected: {said}; ")


def test_the_clock_is_compared_where_the_server_says_its_own() -> None:
    """Ahead is more than nothing."""
    assert _seen(ServerAnswer("OK", date=NOW - timedelta(hours=1))).clock_ahead == timedelta(hours=1)
    assert _seen(ServerAnswer("OK")).clock_ahead is None
    assert _seen(ClosedAfterHandshake()).clock_ahead is None


@pytest.mark.parametrize("name", ["\x1b[2Jours", "a\nok", "\u202egnp", "x" * 1_000_000])
def test_names_that_anybody_may_choose_are_shown_as_words(name: str) -> None:
    """Neither do they steer the terminal, nor begin a line, nor fill the log."""
    for way in (UntrustedServer((name,) * 9, "said"), MisnamedServer((name,) * 9, "expected")):
        said = str(unreached(_seen(way)))
        assert said.isprintable()
        assert len(said) < 1000
