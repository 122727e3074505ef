"""Join tokens on request: what the socket's commands and the command line without a server do."""

import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from certs.keys.bundle import pins
from meshwright.enrolment.store.sqlite import TOKENS_FILE, SqliteTokens
from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRequest, recorded


def open_tokens(state: Path) -> SqliteTokens:
    """Open the tokens of a state directory: the one place that says where they are. Raises StateError."""
    return SqliteTokens.open(state / TOKENS_FILE)


class JoinTokens:
    """Makes, lists and revokes tokens; may be used from several threads, and beside a server.

    `trust_bundle` are the roots (PEM) by which who joins will know the server.
    """

    def __init__(self, state: Path, trust_bundle: Callable[[], bytes], clock: Callable[[], datetime]) -> None:
        self._state = state
        self._trust_bundle = trust_bundle
        self._clock = clock

    def create(self, wanted: TokenRequest, made_by: str) -> tuple[JoinToken, TokenRecord]:
        """Make a token, whose secret is kept nowhere; raise CertificateError."""
        token = JoinToken(secrets.token_hex(6), secrets.token_urlsafe(32), pins(self._trust_bundle()))
        record = recorded(wanted, token.id, made_by, self._clock())
        with self._open() as store:
            store.add(token, record)
        return token, record

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return all of them; raise StateError."""
        with self._open() as store:
            return store.tokens()

    def revoke(self, token: str) -> TokenRecord:
        """Have a token entitle nobody any more; raise CertificateError."""
        with self._open() as store:
            return store.revoke(token, self._clock())

    def _open(self) -> SqliteTokens:
        return open_tokens(self._state)
