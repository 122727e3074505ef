"""File of the ledger: the schema, and the time to wait for the lock."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from certs.state.database import Schema, open_private

_PATIENCE_SECONDS: Final = 0.25
"""Default wait for the lock of another process; short, because the caller may be the event loop."""

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
        # Before admissions were recorded every claimed proxy got traffic. Count them as admitted.
        """
CREATE INDEX proxy_certificates_by_name ON proxy_certificates (common_name);
UPDATE proxy_certificates SET admitted_at = claimed_at WHERE admitted_at IS NULL
""",
        # A new version: a program that ignored claim_by would let in proxies that must be refused.
        """
ALTER TABLE proxy_certificates ADD COLUMN claimed_from TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy_certificates ADD COLUMN seen_at INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN claim_by INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN revoked_why TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy_certificates ADD COLUMN signer TEXT NOT NULL DEFAULT ''
""",
        # Requested lifetimes were not recorded. One shorter than the default (90 days) was requested, so keep
        # renewals short. A longer one may be an older default. Parts of days come from the end of the signer.
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
    """Open the ledger's file; see `certs.state.database.open_private`."""
    connection = open_private(path, SCHEMA)
    connection.execute(_busy(_PATIENCE_SECONDS))
    return connection


@contextmanager
def waiting(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Within the block, wait up to `seconds` for a lock of another process on the ledger's file."""
    connection.execute(_busy(seconds))
    try:
        yield
    finally:
        connection.execute(_busy(_PATIENCE_SECONDS))


def _busy(seconds: float) -> str:
    return f"PRAGMA busy_timeout = {round(seconds * 1000)}"
