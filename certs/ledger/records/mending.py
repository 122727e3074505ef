"""What a store has lost of a proxy's record. A pure module.

A store may go back to an older snapshot, and a record may be deleted by hand. A certificate that was followed
is lost if the store lacks it, unless the leader may have removed it: a day after its end, and a revoked one
later, when no proof is good any more by which its name could be had again. Stamps are never removed. The
rules are those for removals (`certs.ledger.records.pruning`) where nothing is known about the workload.
"""

from datetime import datetime, timedelta
from typing import Final

from certs.ledger.entry import LedgerEntry
from certs.ledger.records.fields import entries_in, merged, name_of_record, with_entries
from meshwright.records.content import Content, Fields
from meshwright.records.key import Key

ENDED_FOR: Final = timedelta(days=1)
"""Time for which an ended certificate stays in any case."""

LONGEST_TOKEN: Final = timedelta(days=366)
"""Longest validity of a join token: tokens that are older than a revocation end within this time."""

CLOCKS_DIFFER: Final = timedelta(hours=1)
"""Longest time by which the clock of the server that removes certificates may be ahead of ours."""

_PROOFS_THAT_END: Final = ("", "token", "kubernetes")
"""Kinds of proof that are good for a limited time, or as long as a Pod is there."""


def mend_proxy(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the fields that a proxy's record must have, or None if nothing of it is lost."""
    name = name_of_record(key)
    entries = entries_in(name, known.fields)
    staying = {entry.serial for entry in entries if _must_stay(entry, now + CLOCKS_DIFFER)}
    if present is None:
        return known.fields if staying else None
    stored = entries_in(name, present.fields)
    there = {entry.serial for entry in stored}
    wanted = merged((entry for entry in entries if entry.serial in staying | there), stored)
    fields = with_entries(present.fields, wanted) or present.fields
    if present.count <= known.count:
        # Other facts about the proxy, of which only the write with the highest count is right.
        fields = {**fields, **known.fields, **_certificates(fields)}
    return None if fields == present.fields else fields


def is_revoked(fields: Fields) -> bool:
    """Return whether a proxy's record has a revoked certificate."""
    certificates = fields.get("certificates")
    values = certificates.values() if isinstance(certificates, dict) else ()
    return any(isinstance(value, dict) and "revoked_at" in value for value in values)


def _certificates(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name == "certificates"}


def _must_stay(entry: LedgerEntry, now: datetime) -> bool:
    """Return whether no server may have removed a certificate."""
    if now <= entry.not_after + ENDED_FOR:
        return True
    if entry.revoked_at is None:
        return False
    kind = entry.joined_by.partition(" ")[0]
    return now <= entry.revoked_at + LONGEST_TOKEN + ENDED_FOR or kind not in _PROOFS_THAT_END
