"""The contract between who makes and redeems join tokens, and what remembers them.

Ours is a file of the state directory (enrolment.store.sqlite); what servers on several machines share has its
place beside it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRefusal


class TokenRefused(Exception):
    """A token does not entitle who shows it; `token` is the id, where it names one that there is."""

    def __init__(self, reason: TokenRefusal, token: str = "") -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.token = token


@dataclass(frozen=True, slots=True)
class TokenRedemption:
    """A token that entitles a key; `first`: it was not this key's before, and one use less is left."""

    token: TokenRecord
    first: bool


class TokenStore(Protocol):
    """Which join tokens there are and which keys have used them. Safe to use from several threads.

    Every method raises certs.errors.StateError where the record cannot be read or written; a call is done as
    a whole or not at all, and what it has done is written when it returns.
    """

    def add(self, token: JoinToken, record: TokenRecord) -> None:
        """Keep a token: of its secret only the digest."""

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return all tokens, those made first before others."""

    def revoke(self, token: str, now: datetime) -> TokenRecord:
        """Have a token entitle nobody from now on; raise certs.errors.RequestError for an unknown id."""

    def recognise(self, token: JoinToken) -> None:
        """Raise TokenRefused where there is no such token, or its secret is another."""

    def redeem(self, token: JoinToken, key: str, now: datetime) -> TokenRedemption:
        """Give a use to a key (its digest), unless it has one; raise TokenRefused.

        However many ask at once, in whatever processes, no more keys have a use than there are uses.
        """

    def give_back(self, token: str, key: str) -> None:
        """Take a use from a key again: nothing came of it."""
