"""Whether somebody comes by a name again that was taken from him: who shows the same is shut out."""

from collections.abc import Iterable
from datetime import datetime

from certs.ledger.entry import LedgerEntry


def revocation(
    entries: Iterable[LedgerEntry], joined_by: str, since: datetime | None, shown: str
) -> LedgerEntry | None:
    """Return the revoked certificate that keeps a name from who shows a proof; None where none does.

    `entries` are those of the name. It is the one that is `shown`, by its serial, where that is the proof: it
    was in force a moment ago. Or it is one that was come by with the same proof, or one that was revoked
    later than `since`, from when on the proof is good: whoever had that one may hold this proof too. One of
    the same second is not later: a token that is made for a machine's way back is good.
    """
    for entry in entries:
        if entry.revoked_at is None:
            continue
        if entry.serial == shown or (joined_by and entry.joined_by == joined_by):
            return entry
        if since is not None and entry.revoked_at > since:
            return entry
    return None
