"""What Envoy's own words mean, and that an application's are none."""

import pytest

from agent.calling.seen import Outcome, Seen, own_words

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
    ],
)
def test_envoy_s_words_have_its_flag(status: int, text: str, flag: str) -> None:
    """As its access log has it."""
    seen = Seen(Outcome.ANSWERED, "here", status, words=own_words(status, f"{text}\n"))
    assert (seen.flag, seen.words, seen.is_denied) == (flag, text, False)


@pytest.mark.parametrize("status", [200, 403, 500, 503])
def test_an_application_s_words_are_not_kept(status: int) -> None:
    """They may be anything, and anybody's."""
    assert own_words(status, "secret") == ""
    assert own_words(200, "no healthy upstream") == ""


def test_a_denial_is_known_by_its_reason_or_its_words() -> None:
    """A 403 without either is the application's."""
    denied = own_words(403, "RBAC: access denied")
    assert Seen(Outcome.ANSWERED, status=403, words=denied).is_denied
    assert Seen(Outcome.ANSWERED, status=403, denied="no-traffic-target").is_denied
    assert not Seen(Outcome.ANSWERED, status=403).is_denied
