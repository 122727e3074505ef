"""Progress of a proxy, derived from the entries of all its certificates.

Progress is permanent. The exception is a revocation of the last certificate in force; a new certificate then
starts from the beginning. A certificate issued while another one was in force inherits the progress.
"""

import enum
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from certs.ledger.entry import LedgerEntry

_FOREVER: Final = datetime.max.replace(tzinfo=UTC)


class Progress(enum.IntEnum):
    """Progress of a proxy: NEW, then AUTHENTICATED with a certificate, then READY with listeners.

    REVOKED: the admitted certificate was revoked, and the proxy has not connected with another one.
    """

    REVOKED = -1
    NEW = 0
    AUTHENTICATED = 1
    READY = 2


def progress(entries: Iterable[LedgerEntry]) -> Progress:
    """Return the progress of a proxy by the entries of all its certificates, in any order."""
    result = sorted(entries, key=lambda entry: entry.issued_at)
    if _is_revoked(result):
        return Progress.REVOKED
    if _lasts(result, lambda entry: entry.admitted_at is not None):
        return Progress.READY
    if _lasts(result, lambda entry: entry.claimed_at is not None):
        return Progress.AUTHENTICATED
    return Progress.NEW


def _is_revoked(entries: Iterable[LedgerEntry]) -> bool:
    """Return whether the last certificate in force was revoked, without use of a later one.

    The result depends on the entries alone, not on the current time.
    """
    known = list(entries)
    last = max((entry.revoked_at for entry in known if entry.revoked_at is not None), default=None)
    if last is None:
        return False
    left = (entry for entry in known if entry.revoked_at is None and entry.not_after > last)
    return not any(entry.issued_at <= last or entry.claimed_at is not None for entry in left)


def _lasts(entries: Iterable[LedgerEntry], reached: Callable[[LedgerEntry], bool]) -> bool:
    """Return whether certificates of a proxy have continued without a gap since one that `reached` the state.

    A certificate continues until its revocation.
    """
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
