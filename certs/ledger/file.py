"""The ledger's file: its schema, and how long is waited for others who have it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from certs.state.database import Schema, open_private

_PATIENCE_SECONDS: Final = 0.25
"""So long is waited for another process that locks the file, where the caller may be the event loop."""

# Times are whole seconds since 1970, UTC.
SCHEMA: Final = Schema(
    "ledger",
    (
        """
CREATE TABLE proxy_certificates (
    serial TEXT PRIMARY KEY,
    common_name TEXT NOT NULL,
    uuid TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    claimed_at INTEGER,
    revoked_at INTEGER,
    admitted_at INTEGER
) WITHOUT ROWID
""",
        # Before admissions were noted, whoever had connected got traffic: to go on, they count as admitted.
        """
CREATE INDEX proxy_certificates_by_name ON proxy_certificates (common_name);
UPDATE proxy_certificates SET admitted_at = claimed_at WHERE admitted_at IS NULL
""",
        # A program that passed over the deadline would let in who is to be refused: it is another version.
        """
ALTER TABLE proxy_certificates ADD COLUMN claimed_from TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy_certificates ADD COLUMN seen_at INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN claim_by INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN revoked_why TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy_certificates ADD COLUMN signer TEXT NOT NULL DEFAULT ''
""",
        # What was asked for was not noted. A shorter life than usual was: one made longer would be worth more
        # than somebody wanted. A longer one may be what was usual before. Parts of days are the signer's end.
        """
ALTER TABLE proxy_certificates ADD COLUMN term INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN joined_by TEXT NOT NULL DEFAULT '';
UPDATE proxy_certificates SET term = not_after - issued_at
    WHERE not_after - issued_at < 90 * 86400 AND (not_after - issued_at) % 86400 = 0
""",
    ),
    ("CREATE TABLE IF NOT EXISTS authority (fingerprint TEXT NOT NULL)",),
)


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file; as `certs.state.database.open_private`."""
    connection = open_private(path, SCHEMA)
    connection.execute(_busy(_PATIENCE_SECONDS))
    return connection


@contextmanager
def waiting(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Wait so long for other processes meanwhile."""
    connection.execute(_busy(seconds))
    try:
        yield
    finally:
        connection.execute(_busy(_PATIENCE_SECONDS))


def _busy(seconds: float) -> str:
    return f"PRAGMA busy_timeout = {round(seconds * 1000)}"
