"""Tests of join tokens as values: their text, and requests for them."""

from datetime import timedelta

import pytest

from certs.errors import RequestError
from meshwright.enrolment.tokens import JoinToken, TokenRequest, read_token, recorded
from tests.unit.enrolment.store.tokens import NOW, TOKEN


def test_token_is_read_as_it_is_written_and_prints_no_secret() -> None:
    """Tokens with and without pins are read back, with a line break at the end."""
    for token in (
        TOKEN,
        JoinToken(TOKEN.id, TOKEN.secret),
        JoinToken(TOKEN.id, TOKEN.secret, ("0" * 64,) * 2),
        JoinToken(TOKEN.id, TOKEN.secret, ("0" * 64,) * 100),
    ):
        assert read_token(f"{token.text()}\n") == token
    assert TOKEN.secret not in repr(TOKEN) + str(TOKEN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0123456789ab",
        f"0123456789ab.{'s' * 42}",
        f"0123456789AB.{'s' * 43}",
        f"{TOKEN.id}.{TOKEN.secret}.",
        f"{TOKEN.id}.{TOKEN.secret}.{'G' * 64}",
        f"{TOKEN.id}.{TOKEN.secret}\n{TOKEN.id}.{TOKEN.secret}",
        "x" * 100_000,
    ],
)
def test_invalid_token_is_refused_without_repeating_its_text(text: str) -> None:
    """A part of the text may be the secret, and the message may reach a log."""
    with pytest.raises(ValueError, match="join token") as refused:
        read_token(text)
    assert TOKEN.secret not in str(refused.value)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (TokenRequest("Shop", "market"), "service is 'Shop': must be a DNS-1123 label"),
        (TokenRequest("shop", "a.b"), "namespace is 'a.b': must be"),
        (TokenRequest("shop", "market", "x y"), "uuid is 'x y': must be"),
        (TokenRequest("shop", "market", uses=0), "uses is 0: must be from 1 to 10000"),
        (TokenRequest("shop", "market", "u1", uses=2), "uses is 2: must be 1 for a token with a uuid"),
        (TokenRequest("shop", "market", valid=timedelta(seconds=1)), "must be from 1 minute to 366 days"),
        (TokenRequest("shop", "market", days=0), "days is 0: must be from 1 to 3652"),
        (TokenRequest("shop", "market", days=3653), "days is 3653: must be from 1 to 3652"),
        (TokenRequest("shop", "market", valid=timedelta(days=400)), "must be from 1 minute to 366 days"),
    ],
)
def test_invalid_token_request_is_refused_with_its_field(wanted: TokenRequest, words: str) -> None:
    """The message has the field, its value, and the valid values."""
    with pytest.raises(RequestError, match=words):
        recorded(wanted, "0123456789ab", "somebody", NOW)
