"""Certificates that the shared ledger may forget, so that its records do not grow for ever.

A certificate is forgotten a day after its end, because the clocks of servers differ a little. Two kinds of
ended certificates stay:

- A revoked one, as long as its name could be had again by a proof that is older than the revocation. A join
  token entitles for at most 366 days, and the token of a Pod for as long as the Pod lives. The limit of other
  kinds of proof is unknown.
- One without which the remaining certificates would tell less about the proxy. For example, only the first
  certificate of a proxy has the time of its first ACK of listeners (`certs.ledger.progress`).

A pure module.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from certs.ledger.entry import LedgerEntry
from certs.ledger.progress import progress
from certs.ledger.records.fields import in_order

ENDED_FOR: Final = timedelta(days=1)
"""Time for which an ended certificate stays in any case."""

LONGEST_TOKEN: Final = timedelta(days=366)
"""Longest validity of a join token: tokens that are older than a revocation end within this time."""


def is_prunable(
    entries: Iterable[LedgerEntry], now: datetime, *, has_workload: bool = True, keeps_revoked: bool = False
) -> bool:
    """Return whether the record with these certificates, which are all of one proxy, may vanish.

    `has_workload` is False if no Pod or machine of the mesh has the proxy; pass True if this is unknown.
    `keeps_revoked` is True if revoked certificates never vanish, because the mesh accepts installed kinds of
    proof, whose validity is unknown.

    For example, a record without certificates may vanish, and one with a certificate in force may not.
    """
    return not kept(entries, now, has_workload=has_workload, keeps_revoked=keeps_revoked)


def kept(
    entries: Iterable[LedgerEntry], now: datetime, *, has_workload: bool = True, keeps_revoked: bool = False
) -> tuple[LedgerEntry, ...]:
    """Return the certificates of one proxy that must stay, sorted by time of issue, then serial.

    The arguments are those of `is_prunable`.
    """
    known = in_order(entries)
    staying = tuple(
        entry
        for entry in known
        if not _is_over(entry, now)
        or (
            entry.revoked_at is not None
            and (keeps_revoked or _forbids(entry, now, has_workload=has_workload))
        )
    )
    if not staying and not has_workload:
        return ()
    return _with_progress(staying, known)


def _is_over(entry: LedgerEntry, now: datetime) -> bool:
    return now > entry.not_after + ENDED_FOR


def _forbids(entry: LedgerEntry, now: datetime, *, has_workload: bool) -> bool:
    """Return whether a proof may be good that this revoked certificate forbids.

    These are the proof by which its holder joined, and all proofs that are older than the revocation.
    """
    assert entry.revoked_at is not None  # noqa: S101 - checked by the caller, for the type checker
    if now <= entry.revoked_at + LONGEST_TOKEN + ENDED_FOR:
        return True
    match entry.joined_by.partition(" ")[0]:
        case "" | "token":
            return False
        case "kubernetes":
            return has_workload
        case _:
            return True


def _with_progress(
    staying: tuple[LedgerEntry, ...], known: tuple[LedgerEntry, ...]
) -> tuple[LedgerEntry, ...]:
    """Return the staying certificates, with another one if they alone show another progress of the proxy."""
    reached = progress(known)
    if progress(staying) is reached:
        return staying
    for entry in reversed(known):
        more = in_order((*staying, entry))
        if entry not in staying and progress(more) is reached:
            return more
    return known
