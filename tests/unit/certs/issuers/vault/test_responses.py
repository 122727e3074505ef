"""Tests of Vault's answers about tokens, valid and invalid ones."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from certs.errors import IssuerError
from certs.issuers.vault.http import Answer
from certs.issuers.vault.responses import Lease, known_lease, lease

NOW = datetime(2031, 1, 1, tzinfo=UTC)


def _of_login(seconds: object) -> Answer:
    return {"auth": {"client_token": "t", "lease_duration": seconds, "renewable": True}}


def _of_token(seconds: object) -> Answer:
    return {"data": {"ttl": seconds, "renewable": False}}


def test_lease_of_a_token_ends_after_its_seconds() -> None:
    """Zero seconds mean that the token never expires."""
    assert lease(_of_login(60), NOW) == Lease("t", NOW, NOW + timedelta(minutes=1), renewable=True)
    assert known_lease("k", _of_token(0), NOW) == Lease("k", NOW, None, renewable=False)


@pytest.mark.parametrize("seconds", [-1, "60", None, 10**12, pytest.param(10**400, id="400 digits")])
@pytest.mark.parametrize(
    "read",
    [
        lambda seconds: lease(_of_login(seconds), NOW),
        lambda seconds: known_lease("k", _of_token(seconds), NOW),
    ],
)
def test_invalid_token_lifetime_is_an_issuer_error(read: Callable[[object], Lease], seconds: object) -> None:
    """A number that is too large must not raise an arithmetic error."""
    with pytest.raises(IssuerError, match=r"^unexpected answer of Vault .*: the t"):
        read(seconds)
