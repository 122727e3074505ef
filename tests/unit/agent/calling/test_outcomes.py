"""Tests of request outcomes: Envoy's own error texts, told apart from an application's."""

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
def test_error_text_of_envoy_has_its_response_flag(status: int, text: str, flag: str) -> None:
    """Each of Envoy's error texts has the response flag of its access log."""
    seen = RequestOutcome(Outcome.ANSWERED, "here", status, words=own_words(status, f"{text}\n"))
    assert (seen.flag, seen.words, seen.is_denied) == (flag, text, False)


@pytest.mark.parametrize("status", [200, 403, 500, 503])
def test_text_of_an_application_is_not_kept(status: int) -> None:
    """An application's text is dropped, because it can contain anything, for example a secret."""
    assert own_words(status, "secret") == ""
    assert own_words(200, "no healthy upstream") == ""


def test_denial_is_known_by_its_header_or_its_text() -> None:
    """A 403 without the sidecar's reason and without Envoy's RBAC text is the application's."""
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
def test_remote_connection_failure_lies_between_the_sidecars(
    reason: str, undelivered: bool, between: bool
) -> None:
    """A remote connection failure lies between the sidecars.

    A failure that the called sidecar marked as undelivered does not.
    """
    words = own_words(503, RESET.format(reason))
    seen = RequestOutcome(Outcome.ANSWERED, status=503, words=words, undelivered=undelivered)
    assert seen.is_between_sidecars is between


@pytest.mark.parametrize("status", [400, 408, 413, 429])
def test_text_below_status_500_is_envoy_s_only_as_a_whole(status: int) -> None:
    """Below 500 only the exact text is Envoy's. An application can write the same words within a text."""
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
def test_own_answer_header_is_parsed(header: str, expected: OwnAnswer | None) -> None:
    """The header has the side, the flags and the details as Envoy formats them.

    Any other value is ignored.
    """
    assert own_answer(header) == expected


def test_side_of_an_answer_is_known_from_headers_only() -> None:
    """The own-answer header or the called sidecar's marks give the side; without them it is unknown."""
    failed = RequestOutcome(Outcome.ANSWERED, status=503, own=OwnAnswer(Side.CALLED, ("UF",)))
    assert [failed.side, RequestOutcome(Outcome.ANSWERED, denied="x").side] == [Side.CALLED, Side.CALLED]
    assert not failed.is_between_sidecars
    assert RequestOutcome(
        Outcome.ANSWERED, status=503, own=OwnAnswer(Side.CALLER, ("UF", "URX"))
    ).is_between_sidecars
    answered = RequestOutcome(Outcome.ANSWERED, status=404)
    assert (answered.side, answered.is_own, answered.flag, answered.details) == (None, False, "", "")
