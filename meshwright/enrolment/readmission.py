"""Prevention of re-enrolment: a revoked machine cannot join again with the same proof."""

from collections.abc import Iterable
from datetime import datetime

from certs.ledger.entry import LedgerEntry


def revocation(
    entries: Iterable[LedgerEntry], joined_by: str, since: datetime | None, shown: str
) -> LedgerEntry | None:
    """Return the revoked certificate that forbids a name for a proof, or `None`.

    `entries` are the ledger entries of the name. A revoked entry forbids the name in three cases:

    - the serial is `shown`, the certificate used as proof, which was revoked a moment ago;
    - the certificate was issued for the same proof (`joined_by`);
    - the revocation is later than `since`, when the proof became valid, because the holder may have this
      proof too.

    A revocation in the same second as `since` does not count, so a token made for a machine's return works.
    """
    for entry in entries:
        if entry.revoked_at is None:
            continue
        if entry.serial == shown or (joined_by and entry.joined_by == joined_by):
            return entry
        if since is not None and entry.revoked_at > since:
            return entry
    return None
