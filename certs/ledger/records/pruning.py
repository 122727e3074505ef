"""Certificates that the shared ledger may forget, so that its records do not grow for ever.

A certificate is forgotten a day after its end, because the clocks of servers differ a little. That of a Pod
is forgotten a day after the Pod's end: a Pod never comes back, and most certificates of a cluster are of Pods
that have been replaced. A Pod has not ended when its namespace leaves the mesh, and a revoked certificate
does not end with its Pod. Two kinds of ended certificates stay:

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
"""Time for which a certificate stays in any case after its end, or that of its Pod."""

LONGEST_TOKEN: Final = timedelta(days=366)
"""Longest validity of a join token: tokens that are older than a revocation end within this time."""

_OF_POD: Final = "kubernetes "


def is_prunable(
    entries: Iterable[LedgerEntry],
    now: datetime,
    *,
    has_workload: bool = True,
    keeps_revoked: bool = False,
    gone_since: datetime | None = None,
) -> bool:
    """Return whether the record with these certificates, which are all of one proxy, may vanish.

    - `has_workload` is False if no Pod or machine has the proxy, in the mesh or outside it; pass True if this
      is unknown.
    - `keeps_revoked` is True if revoked certificates never vanish, because the mesh accepts installed kinds
      of proof, whose validity is unknown.
    - `gone_since` is the time from which on no workload with the proxy has existed, None if unknown.

    For example, a record without certificates may vanish, and one with the certificate of a machine may not
    vanish before the certificate's end.
    """
    return not kept(
        entries, now, has_workload=has_workload, keeps_revoked=keeps_revoked, gone_since=gone_since
    )


def kept(
    entries: Iterable[LedgerEntry],
    now: datetime,
    *,
    has_workload: bool = True,
    keeps_revoked: bool = False,
    gone_since: datetime | None = None,
) -> tuple[LedgerEntry, ...]:
    """Return the certificates of one proxy that must stay, sorted by time of issue, then serial.

    The arguments are those of `is_prunable`.
    """
    known = in_order(entries)
    staying = tuple(
        entry
        for entry in known
        if decides(entry, now, has_workload=has_workload, keeps_revoked=keeps_revoked, gone_since=gone_since)
    )
    if not staying and not has_workload:
        return ()
    return _with_progress(staying, known)


def decides(
    entry: LedgerEntry,
    now: datetime,
    *,
    has_workload: bool = True,
    keeps_revoked: bool = False,
    gone_since: datetime | None = None,
) -> bool:
    """Return whether a certificate still decides about its proxy, and must stay for itself.

    The arguments are those of `is_prunable`.
    """
    if not _is_over(entry, now, None if has_workload else gone_since):
        return True
    return entry.revoked_at is not None and (keeps_revoked or _forbids(entry, now, has_workload=has_workload))


def _is_over(entry: LedgerEntry, now: datetime, gone_since: datetime | None) -> bool:
    """Return whether a certificate is useless: it has expired, or its Pod has ended.

    The holder of a revoked one may have copied the key, so the end of its Pod does not make it useless.
    """
    if now > entry.not_after + ENDED_FOR:
        return True
    if entry.revoked_at is not None:
        return False
    is_of_pod = entry.joined_by.startswith(_OF_POD)
    return is_of_pod and gone_since is not None and now > max(gone_since, entry.issued_at) + ENDED_FOR


def _forbids(entry: LedgerEntry, now: datetime, *, has_workload: bool) -> bool:
    """Return whether a proof may be good that this revoked certificate forbids.

    These are the proof by which its holder joined, and all proofs that are older than the revocation.
    """
    assert entry.revoked_at is not None  # noqa: S101 - checked by the caller, for the type checker
    if now <= entry.revoked_at + LONGEST_TOKEN + ENDED_FOR:
        return True
    match entry.joined_by.partition(" ")[0]:
        case "" | "join-token":
            return False
        case "kubernetes":  # of a Pod
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
