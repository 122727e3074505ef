"""Contract of the storage of join tokens.

The implementation is a file in the state directory (`enrolment.store.sqlite`). A store shared by servers on
several machines would be another implementation.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRefusal


class TokenRefused(Exception):
    """Error for a token that does not entitle its holder.

    `token` is the id, if a token with this id exists.
    """

    def __init__(self, reason: TokenRefusal, token: str = "") -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.token = token


@dataclass(frozen=True, slots=True)
class TokenRedemption:
    """Result of a redemption; `first` is True for the key's first use of the token."""

    token: TokenRecord
    first: bool


class TokenStore(Protocol):
    """Join tokens, and the keys that have used them. Safe to use from several threads.

    Every method raises `certs.errors.StateError` if the store cannot be read or written. A call is atomic,
    and its result is on disk when it returns.
    """

    def add(self, token: JoinToken, record: TokenRecord) -> None:
        """Store a token; of the secret only the digest is kept."""

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return all tokens, oldest first."""

    def revoke(self, token: str, now: datetime) -> TokenRecord:
        """Revoke a token; raise `certs.errors.RequestError` for an unknown id."""

    def recognise(self, token: JoinToken) -> None:
        """Raise TokenRefused if the token does not exist, or has another secret."""

    def redeem(self, token: JoinToken, key: str, now: datetime) -> TokenRedemption:
        """Assign a use to a key (its digest), unless the key has one; raise TokenRefused.

        Concurrent calls, also from other processes, never assign more uses than the token has.
        """

    def give_back(self, token: str, key: str) -> None:
        """Take the use of a token from a key, because the certificate was not issued."""
