"""Join tokens for commands, over the socket or without a server."""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self

from certs.keys.bundle import pins
from meshwright.enrolment.store.contract import TokenStore
from meshwright.enrolment.store.sqlite import TOKENS_FILE, SqliteTokens
from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRequest, recorded

OpenTokens = Callable[[], AbstractContextManager[TokenStore]]
"""Opens the store of join tokens for a context, or raises StateError."""


def open_tokens(state: Path) -> SqliteTokens:
    """Open the file of join tokens in a state directory; raise StateError.

    Only this function knows the path.
    """
    return SqliteTokens.open(state / TOKENS_FILE)


class JoinTokens:
    """Creation, listing and revocation of tokens; safe from several threads, and beside a running server.

    `trust_bundle` returns the CA certificates (PEM) whose pins go into tokens.
    """

    def __init__(
        self, opening: OpenTokens, trust_bundle: Callable[[], bytes], clock: Callable[[], datetime]
    ) -> None:
        self._open = opening
        self._trust_bundle = trust_bundle
        self._clock = clock

    @classmethod
    def in_directory(
        cls, state: Path, trust_bundle: Callable[[], bytes], clock: Callable[[], datetime]
    ) -> Self:
        """Return the tokens in the file of a state directory."""
        return cls(partial(open_tokens, state), trust_bundle, clock)

    def create(self, wanted: TokenRequest, made_by: str) -> tuple[JoinToken, TokenRecord]:
        """Create a join token; raise CertificateError. The token's secret is returned but not stored."""
        token = JoinToken(secrets.token_hex(6), secrets.token_urlsafe(32), pins(self._trust_bundle()))
        record = recorded(wanted, token.id, made_by, self._clock())
        # The file is opened for each call, because commands also run without a server.
        with self._open() as store:
            store.add(token, record)
        return token, record

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return all tokens; raise StateError."""
        with self._open() as store:
            return store.tokens()

    def revoke(self, token: str) -> TokenRecord:
        """Revoke a token; raise CertificateError."""
        with self._open() as store:
            return store.revoke(token, self._clock())
