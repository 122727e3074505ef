"""Contract of the storage of join tokens.

Implementations are a file in the state directory (`enrolment.store.sqlite`), and records that servers on
several machines share (`enrolment.store.records`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRefusal

REMEMBERED: Final = timedelta(days=90)
"""Time after the end for which a token is still listed."""


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
    """Result of using a join token for a key; `first` is True for the key's first use of the token."""

    token: TokenRecord
    first: bool


class TokenStore(Protocol):
    """Join tokens, and the keys that have used them. Safe to use from several threads.

    Every method raises `certs.errors.StateError` if the store cannot be read or written. A call is atomic,
    and its result is stored when it returns. A shared store knows the tokens and uses of other servers a
    moment later; what decides, the present state of a token and its uses, is always asked of the store.
    """

    def add(self, token: JoinToken, record: TokenRecord) -> None:
        """Store a join token; of the secret only the SHA-256 is stored."""

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return the records of all join tokens, oldest first."""

    def revoke(self, token: str, now: datetime) -> TokenRecord:
        """Revoke the join token with this id; raise `certs.errors.RequestError` for an unknown id."""

    def recognise(self, token: JoinToken) -> None:
        """Raise TokenRefused if no stored join token has this id, or if the secret is wrong."""

    def redeem(self, token: JoinToken, key: str, now: datetime) -> TokenRedemption:
        """Assign a use to a key (its digest), unless the key has one; raise TokenRefused.

        Concurrent calls, also from other processes, never assign more uses than the token has.
        """

    def give_back(self, token: str, key: str) -> None:
        """Cancel a key's use of a join token, because the certificate was not issued."""
