"""Join tokens in one SQLite file of the state directory (0600), shared by the processes of one machine."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from certs import files
from certs.errors import RequestError, StateError
from enrolment.store.contract import Redeemed, TokenRefused
from enrolment.tokens import JoinToken, TokenRecord, TokenRefusal, refusal
from mesh.names import Namespace, ProxyUuid, ServiceName

TOKENS_FILE: Final = "tokens.sqlite"
SCHEMA_VERSION: Final = 1
BUSY_SECONDS: Final = 5.0
REMEMBERED: Final = timedelta(days=90)
"""So long after its end a token is still listed."""

# Times are whole seconds since 1970, UTC; digests hexadecimal.
_SCHEMA: Final = """
BEGIN;
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, secret_digest TEXT NOT NULL, service TEXT NOT NULL, namespace TEXT NOT NULL,
    uuid TEXT, uses INTEGER NOT NULL, days INTEGER, made_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    made_by TEXT NOT NULL, revoked_at INTEGER
);
CREATE TABLE redemptions (
    token TEXT NOT NULL REFERENCES tokens ON DELETE CASCADE, key_digest TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (token, key_digest)
) WITHOUT ROWID;
PRAGMA user_version = 1;
COMMIT
"""
_SELECT: Final = """
SELECT id, service, namespace, uuid, uses, (SELECT count(*) FROM redemptions WHERE token = id), made_at,
       expires_at, made_by, days, revoked_at, secret_digest FROM tokens
"""


class SqliteTokens:
    """The open store, as enrolment.store.contract.TokenStore has it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the store at `path` (0600), made where it is missing; raise StateError if it is no such."""
        files.private_directory(path.parent)
        with files.locked(path.with_name(f"{path.name}.lock")), _explained(path):
            files.touch_private(path)
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                _prepare(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    def close(self) -> None:
        """Close the file; what is asked afterwards is StateError."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, token: JoinToken, record: TokenRecord) -> None:
        """Keep a token, and forget those that ended long ago."""
        row = (
            *(record.id, token.secret_digest, record.service, record.namespace, record.uuid, record.uses),
            *(record.days, _seconds(record.made_at), _seconds(record.expires_at), record.made_by),
        )
        with self._changing() as connection:
            ended = _seconds(record.made_at - REMEMBERED)
            connection.execute("DELETE FROM tokens WHERE expires_at < ?", (ended,))
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)", row)

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return all tokens, those made first before others."""
        with self._lock, _explained(self._path):
            rows = self._connection.execute(f"{_SELECT} ORDER BY made_at, id").fetchall()
        return tuple(_record(row) for row in rows)

    def revoke(self, token: str, now: datetime) -> TokenRecord:
        """Have a token entitle nobody from now on; a second time changes nothing. Raises RequestError."""
        with self._changing() as connection:
            connection.execute(
                "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (_seconds(now), token)
            )
            row = connection.execute(f"{_SELECT} WHERE id = ?", (token,)).fetchone()
        if row is None:
            raise RequestError(
                f"there is no join token {token[:80]!r}: `meshwright certs token list` has all"
            )
        return _record(row)

    def redeem(self, token: JoinToken, key: str, now: datetime) -> Redeemed:
        """Give a use to a key (its digest), unless it has one; raise TokenRefused."""
        with self._changing() as connection:
            row = connection.execute(f"{_SELECT} WHERE id = ?", (token.id,)).fetchone()
            if row is None:
                raise TokenRefused(TokenRefusal.UNKNOWN)
            asked = "SELECT 1 FROM redemptions WHERE token = ? AND key_digest = ?"
            known = connection.execute(asked, (token.id, key)).fetchone() is not None
            record = _record(row)
            reason = refusal(record, row[-1], token.secret_digest, now, known_key=known)
            if reason is not None:
                raise TokenRefused(reason, token.id)
            if not known:
                use = (token.id, key, _seconds(now))
                connection.execute("INSERT INTO redemptions VALUES (?, ?, ?)", use)
        return Redeemed(record, not known)

    def give_back(self, token: str, key: str) -> None:
        """Take a use from a key again."""
        with self._changing() as connection:
            connection.execute("DELETE FROM redemptions WHERE token = ? AND key_digest = ?", (token, key))

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Do all that is in the block, or nothing; others wait."""
        with self._lock, _explained(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version > SCHEMA_VERSION:
        raise StateError(
            f"the join tokens {path} are of a newer version of Meshwright (their schema is {version}, this "
            f"program knows up to {SCHEMA_VERSION})"
        )
    if version == 0 and tables:
        raise StateError(f"{path} does not hold join tokens but is another database; move it away")
    connection.execute(
        "PRAGMA synchronous = FULL"
    )  # a use that was given must be known after a power failure
    connection.execute("PRAGMA foreign_keys = ON")
    if version == 0:
        connection.executescript(_SCHEMA)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StateError(f"the join tokens {path} cannot be used: {error}") from error
    except OSError as error:
        raise StateError(f"the join tokens {path} cannot be opened: {error.strerror}") from error


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
