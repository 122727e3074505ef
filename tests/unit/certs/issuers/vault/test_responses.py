"""What a Vault's answers say, and that nonsense is said to be so."""

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


def test_how_long_a_token_is_good() -> None:
    """Zero is for ever."""
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
def test_lives_that_no_clock_has(read: Callable[[object], Lease], seconds: object) -> None:
    """They are an answer that is not understood, and no error of arithmetic."""
    with pytest.raises(IssuerError, match=r"^unexpected answer of Vault .*: it has no t"):
        read(seconds)
