"""Test of a proxy's progress, which is derived from all its certificates until all of them are revoked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from certs.ledger.entry import LedgerEntry
from certs.ledger.progress import Progress, progress
from meshwright.mesh.names import ProxyUuid

START = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def at(hour: int | None) -> datetime | None:
    """Return the moment this number of hours after the start, or None."""
    return None if hour is None else START + timedelta(hours=hour)


def entry(
    issued: int, *, claimed: int | None = None, admitted: int | None = None, revoked: int | None = None
) -> LedgerEntry:
    """Return an entry from the hours of its issue, claim, admission and revocation."""
    begin = START + timedelta(hours=issued)
    end = START + timedelta(days=365)
    return LedgerEntry(
        f"{issued:x}", "u.s.n", ProxyUuid("u"), begin, end, at(claimed), at(revoked), at(admitted)
    )


def expired(issued: int, *, claimed: int, admitted: int) -> LedgerEntry:
    """Return an entry of a certificate that lived for a day."""
    ledger_entry = entry(issued, claimed=claimed, admitted=admitted)
    return replace(ledger_entry, not_after=ledger_entry.issued_at + timedelta(days=1))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((), Progress.NEW),
        ((entry(0),), Progress.NEW),
        ((entry(0, claimed=1),), Progress.AUTHENTICATED),
        ((entry(0, claimed=1, admitted=2),), Progress.READY),
        ((entry(0, claimed=1, admitted=2, revoked=3),), Progress.REVOKED),
        # The next certificate was issued before the old one was revoked, so the progress is kept.
        ((entry(0, claimed=1, admitted=2, revoked=5), entry(4)), Progress.READY),
        ((entry(0, claimed=1, revoked=5), entry(4)), Progress.AUTHENTICATED),
        # The next certificate was issued after all were revoked, and must be claimed.
        ((entry(0, claimed=1, admitted=2, revoked=3), entry(4)), Progress.REVOKED),
        ((entry(0, claimed=1, admitted=2, revoked=3), entry(4, claimed=5)), Progress.AUTHENTICATED),
        ((entry(0, claimed=1, admitted=2, revoked=3), entry(4, claimed=5, admitted=6)), Progress.READY),
        # An expired certificate keeps no progress; an unused one in force does.
        ((expired(0, claimed=1, admitted=2), entry(48, claimed=49, revoked=50)), Progress.REVOKED),
        ((entry(0, revoked=5), entry(4)), Progress.NEW),
        # A chain of certificates, each issued while the previous one was in force.
        ((entry(0, admitted=1, revoked=4), entry(3, revoked=7), entry(6)), Progress.READY),
        ((entry(0, admitted=1, revoked=4), entry(3, revoked=5), entry(6)), Progress.REVOKED),
        ((entry(0, admitted=1, revoked=4), entry(3, revoked=5), entry(6, claimed=7)), Progress.AUTHENTICATED),
    ],
)
def test_progress_is_kept_until_all_certificates_are_revoked(
    entries: tuple[LedgerEntry, ...], expected: Progress
) -> None:
    """The order of the entries does not matter."""
    assert progress(entries) is progress(reversed(entries)) is expected
