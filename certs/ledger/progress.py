"""What a proxy's certificates, taken together, say of it: how far it has ever come.

Both are remembered for good. Only when none of its certificates is left that was in force when one was
revoked is it forgotten; then a new one begins anew. A certificate that was issued while another one held
carries on what that one had.
"""

import enum
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from certs.ledger.entry import LedgerEntry

_FOREVER: Final = datetime.max.replace(tzinfo=UTC)


class Progress(enum.IntEnum):
    """How far a proxy has come: NEW, then AUTHENTICATED with a certificate, then READY with listeners.

    REVOKED: what let it in was revoked, and it has not come with another one.
    """

    REVOKED = -1
    NEW = 0
    AUTHENTICATED = 1
    READY = 2


def progress(entries: Iterable[LedgerEntry]) -> Progress:
    """Return how far a proxy has come, by the entries of all its certificates in any order."""
    found = sorted(entries, key=lambda entry: entry.issued_at)
    if _is_revoked(found):
        return Progress.REVOKED
    if _lasts(found, lambda entry: entry.admitted_at is not None):
        return Progress.READY
    if _lasts(found, lambda entry: entry.claimed_at is not None):
        return Progress.AUTHENTICATED
    return Progress.NEW


def _is_revoked(entries: Iterable[LedgerEntry]) -> bool:
    """Say whether the last to be revoked was the last that was in force, and no later one has been used.

    By what stands in the entries alone: no clock says otherwise at another moment.
    """
    known = list(entries)
    last = max((entry.revoked_at for entry in known if entry.revoked_at is not None), default=None)
    if last is None:
        return False
    left = (entry for entry in known if entry.revoked_at is None and entry.not_after > last)
    return not any(entry.issued_at <= last or entry.claimed_at is not None for entry in left)


def _lasts(entries: Iterable[LedgerEntry], reached: Callable[[LedgerEntry], bool]) -> bool:
    """Say whether from a certificate that got so far there was always one in force until now."""
    known = list(entries)
    until = max((_end(entry) for entry in known if reached(entry)), default=None)
    if until is None:
        return False
    for entry in known:
        if entry.issued_at <= until:
            until = max(until, _end(entry))
    return until == _FOREVER


def _end(entry: LedgerEntry) -> datetime:
    return entry.revoked_at or _FOREVER
