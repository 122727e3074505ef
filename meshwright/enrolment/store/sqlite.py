"""Join tokens in an SQLite file of the state directory (mode 0600), shared by a machine's processes."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

from certs.errors import RequestError
from certs.state import files
from certs.state.database import GIVE_UP_PAGES, Schema, changing, explained, is_full, open_private
from meshwright.enrolment.store.contract import REMEMBERED, TokenRedemption, TokenRefused
from meshwright.enrolment.store.token_fields import StoredToken, TokenWithUses
from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRefusal, has_secret, refusal
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName

TOKENS_FILE: Final = "tokens.sqlite"

# Times are whole seconds since 1970, UTC; digests hexadecimal.
_SCHEMA: Final = Schema(
    "token store",
    (
        """
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, secret_digest TEXT NOT NULL, service TEXT NOT NULL, namespace TEXT NOT NULL,
    uuid TEXT, uses INTEGER NOT NULL, days INTEGER, made_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    made_by TEXT NOT NULL, revoked_at INTEGER
);
CREATE TABLE redemptions (
    token TEXT NOT NULL REFERENCES tokens ON DELETE CASCADE, key_digest TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (token, key_digest)
) WITHOUT ROWID
""",
    ),
)
_SELECT: Final = """
SELECT id, service, namespace, uuid, uses, (SELECT count(*) FROM redemptions WHERE token = id), made_at,
       expires_at, made_by, days, revoked_at, secret_digest FROM tokens
"""
_INSERT: Final = "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_log = structlog.get_logger("enrolment.store")


class SqliteTokens:
    """The open store; see `enrolment.store.contract.TokenStore`.

    If the file was deleted or replaced, the next call opens the new file. Otherwise this process would accept
    tokens revoked in the new file, or missing there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = _opened(path)
        self._is_open = True
        self._file_identity = files.identity(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the store at `path` (mode 0600), created if missing; raise StateError for any other file."""
        return cls(path)

    def close(self) -> None:
        """Close the SQLite file; later calls raise StateError."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, token: JoinToken, record: TokenRecord) -> None:
        """Store a join token, and delete tokens that expired more than 90 days before."""
        row = _row(record, token.secret_digest)
        with self._changing() as connection:
            ended = _seconds(record.made_at - REMEMBERED)
            connection.execute("DELETE FROM tokens WHERE expires_at < ?", (ended,))
            connection.execute(_INSERT, row)

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return the records of all join tokens, oldest first."""
        with self._asking() as connection:
            rows = connection.execute(f"{_SELECT} ORDER BY made_at, id").fetchall()
        return tuple(_record(row) for row in rows)

    def stored(self) -> tuple[TokenWithUses, ...]:
        """Return everything in the store, for a move to another one, sorted by id."""
        with self._changing() as connection:
            rows = connection.execute(f"{_SELECT} ORDER BY id").fetchall()
            redemptions = connection.execute("SELECT token, key_digest, at FROM redemptions").fetchall()
        uses: dict[str, dict[str, datetime]] = {row[0]: {} for row in rows}
        for token, key, at in redemptions:
            uses[token][key] = _moment(at)
        stored = (StoredToken(replace(_record(row), used=0), row[-1]) for row in rows)
        return tuple(TokenWithUses(token, uses[token.record.id]) for token in stored)

    def add_stored(self, tokens: Iterable[TokenWithUses]) -> None:
        """Store the tokens of another store with their uses, in one transaction."""
        with self._changing() as connection:
            for each in tokens:
                row = _row(each.stored.record, each.stored.secret_digest)
                connection.execute(_INSERT, row)
                connection.executemany(
                    "INSERT INTO redemptions VALUES (?, ?, ?)",
                    [(row[0], key, _seconds(at)) for key, at in sorted(each.uses.items())],
                )

    def revoke(self, token: str, now: datetime) -> TokenRecord:
        """Revoke a join token; a second call has no effect. Raises RequestError for an unknown id."""
        with self._asking() as connection:
            try:
                row = _revoked(connection, token, now)
            except sqlite3.OperationalError as error:
                # A revocation must work on a full disk, so it may use the pages reserved in the file.
                if not is_full(error):
                    raise
                row = _revoked(connection, token, now, full=True)
        if row is None:
            raise RequestError(
                f"join token {token[:80]!r} does not exist: `meshwright certs token list` lists all of them"
            )
        return _record(row)

    def recognise(self, token: JoinToken) -> None:
        """Raise TokenRefused if the token does not exist, or has another secret.

        Works without a write lock, so other requests do not wait.
        """
        with self._asking() as connection:
            _recognised(connection, token)

    def redeem(self, token: JoinToken, key: str, now: datetime) -> TokenRedemption:
        """Assign a use of a join token to a key digest, unless the key has one; raise TokenRefused."""
        # One write transaction for check and use: two processes cannot both take the last use.
        with self._changing() as connection:
            record = _recognised(connection, token)
            asked = "SELECT 1 FROM redemptions WHERE token = ? AND key_digest = ?"
            known = connection.execute(asked, (token.id, key)).fetchone() is not None
            reason = refusal(record, now, known_key=known)
            if reason is not None:
                raise TokenRefused(reason, token.id)
            if not known:
                use = (token.id, key, _seconds(now))
                connection.execute("INSERT INTO redemptions VALUES (?, ?, ?)", use)
        return TokenRedemption(record, not known)

    def give_back(self, token: str, key: str) -> None:
        """Cancel a key's use of a join token, so another key can use the token."""
        with self._changing() as connection:
            connection.execute("DELETE FROM redemptions WHERE token = ? AND key_digest = ?", (token, key))

    @contextmanager
    def _asking(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._current()
            with explained(self._path, _SCHEMA):
                yield connection

    def _current(self) -> sqlite3.Connection:
        """Return the connection to the present file.

        A failed attempt to open the file is repeated with the next call.
        """
        if not self._is_open or files.identity(self._path) != self._file_identity:
            _log.error(
                "join token file was replaced or removed; the server opens it again", path=str(self._path)
            )
            self._connection.close()
            # If opening fails below, the next call tries again.
            self._is_open = False
            self._connection = _opened(self._path)
            self._file_identity, self._is_open = files.identity(self._path), True
        return self._connection

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._asking() as connection, changing(connection):
            yield connection


def _opened(path: Path) -> sqlite3.Connection:
    connection = open_private(path, _SCHEMA)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _revoked(
    connection: sqlite3.Connection, token: str, now: datetime, *, full: bool = False
) -> tuple[str, ...] | None:
    """Write the revocation of a token, and return its row; on a `full` disk into reserved pages."""
    with changing(connection):
        if full:
            connection.execute(GIVE_UP_PAGES)
        revoke = "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
        connection.execute(revoke, (_seconds(now), token))
        row: tuple[str, ...] | None = connection.execute(f"{_SELECT} WHERE id = ?", (token,)).fetchone()
        return row


def _recognised(connection: sqlite3.Connection, token: JoinToken) -> TokenRecord:
    """Return the stored record of a join token if the secret is right; raise TokenRefused otherwise."""
    row = connection.execute(f"{_SELECT} WHERE id = ?", (token.id,)).fetchone()
    if row is None:
        raise TokenRefused(TokenRefusal.UNKNOWN)
    if not has_secret(token, row[-1]):
        raise TokenRefused(TokenRefusal.WRONG_SECRET, token.id)
    return _record(row)


def _row(record: TokenRecord, secret_digest: str) -> tuple[str | int | None, ...]:
    return (
        *(record.id, secret_digest, record.service, record.namespace, record.uuid, record.uses, record.days),
        *(_seconds(record.made_at), _seconds(record.expires_at), record.made_by),
        None if record.revoked_at is None else _seconds(record.revoked_at),
    )


def _record(row: tuple[str, ...]) -> TokenRecord:
    identifier, service, namespace, uuid, uses, used, made_at, expires_at, made_by, days, revoked_at, _ = row
    return TokenRecord(
        id=identifier,
        service=ServiceName(service),
        namespace=Namespace(namespace),
        uuid=None if uuid is None else ProxyUuid(uuid),
        uses=int(uses),
        used=int(used),
        made_at=_moment(made_at),
        expires_at=_moment(expires_at),
        made_by=made_by,
        days=None if days is None else int(days),
        revoked_at=None if revoked_at is None else _moment(revoked_at),
    )


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _moment(seconds: str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)
