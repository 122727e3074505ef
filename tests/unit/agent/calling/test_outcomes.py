"""What Envoy's own words mean, and that an application's are none."""

import pytest

from meshwright.agent.calling.outcomes import Outcome, OwnAnswer, RequestOutcome, own_answer, own_words
from meshwright.sidecars.layout import Side

RESET = "upstream connect error or disconnect/reset before headers. reset reason: {}"


@pytest.mark.parametrize(
    ("status", "text", "flag"),
    [
        (503, "no healthy upstream", "UH"),
        (503, RESET.format("connection failure"), "UF"),
        (503, RESET.format("remote connection failure, transport failure reason: x"), "UF"),
        (503, RESET.format("connection termination"), "UC"),
        (503, RESET.format("overflow"), "UO"),
        (504, "upstream request timeout", "UT"),
        (504, "stream timeout", "SI"),
        (429, "local_rate_limited", "RL"),
        (408, "stream timeout", "SI"),
        (400, "Bad Request", "DPE"),
        (431, "Request Header Fields Too Large", "DPE"),
    ],
)
def test_envoy_s_words_have_its_flag(status: int, text: str, flag: str) -> None:
    """As its access log has it."""
    seen = RequestOutcome(Outcome.ANSWERED, "here", status, words=own_words(status, f"{text}\n"))
    assert (seen.flag, seen.words, seen.is_denied) == (flag, text, False)


@pytest.mark.parametrize("status", [200, 403, 500, 503])
def test_an_application_s_words_are_not_kept(status: int) -> None:
    """They may be anything, and anybody's."""
    assert own_words(status, "secret") == ""
    assert own_words(200, "no healthy upstream") == ""


def test_a_denial_is_known_by_its_reason_or_its_words() -> None:
    """A 403 without either is the application's."""
    denied = own_words(403, "RBAC: access denied")
    assert RequestOutcome(Outcome.ANSWERED, status=403, words=denied).is_denied
    assert RequestOutcome(Outcome.ANSWERED, status=403, denied="no-traffic-target").is_denied
    assert not RequestOutcome(Outcome.ANSWERED, status=403).is_denied


@pytest.mark.parametrize(
    ("reason", "undelivered", "between"),
    [
        ("remote connection failure", False, True),
        (
            "remote connection failure, transport failure reason: TLS_error:|268435703:SSL routines",
            False,
            True,
        ),
        ("connection failure", True, False),
        ("connection termination", False, False),
    ],
)
def test_who_could_not_connect(reason: str, undelivered: bool, between: bool) -> None:
    """The called sidecar says of its application; what it does not say has failed between the sidecars."""
    words = own_words(503, RESET.format(reason))
    seen = RequestOutcome(Outcome.ANSWERED, status=503, words=words, undelivered=undelivered)
    assert seen.is_between_sidecars is between


@pytest.mark.parametrize("status", [400, 408, 413, 429])
def test_words_below_500_are_envoy_s_only_as_a_whole(status: int) -> None:
    """An application may write more or less around them."""
    assert own_words(status, "sorry: local_rate_limited, stream timeout, Bad Request") == ""


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("caller NR route_not_found", OwnAnswer(Side.CALLER, ("NR",), "route_not_found")),
        ("called - path_normalization_failed", OwnAnswer(Side.CALLED, (), "path_normalization_failed")),
        ("caller UF,URX", OwnAnswer(Side.CALLER, ("UF", "URX"))),
        ("called DPE http1.invalid_url more", OwnAnswer(Side.CALLED, ("DPE",), "http1.invalid_url more")),
        ("caller", OwnAnswer(Side.CALLER)),
        ("", None),
        ("somebody NR", None),
    ],
)
def test_the_header_of_an_own_answer(header: str, expected: OwnAnswer | None) -> None:
    """Side, flags and details as Envoy formats them; anything else says nothing."""
    assert own_answer(header) == expected


def test_whose_answer_it_is() -> None:
    """By the header of an own answer, and by the marks of the called sidecar; else nobody can tell."""
    failed = RequestOutcome(Outcome.ANSWERED, status=503, own=OwnAnswer(Side.CALLED, ("UF",)))
    assert [failed.side, RequestOutcome(Outcome.ANSWERED, denied="x").side] == [Side.CALLED, Side.CALLED]
    assert not failed.is_between_sidecars
    assert RequestOutcome(
        Outcome.ANSWERED, status=503, own=OwnAnswer(Side.CALLER, ("UF", "URX"))
    ).is_between_sidecars
    answered = RequestOutcome(Outcome.ANSWERED, status=404)
    assert (answered.side, answered.is_own, answered.flag, answered.details) == (None, False, "", "")
