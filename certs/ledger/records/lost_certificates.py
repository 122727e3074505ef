"""Losses of a store in a proxy's record, and the fields to write again. A pure module.

A store may go back to an older snapshot, and a record may be deleted by hand. A certificate that was followed
is lost if the store lacks it, unless a server may have removed it (`certs.ledger.records.pruning`). Stamps
are never removed.
"""

from datetime import datetime, timedelta
from typing import Final

from certs.ledger.records.fields import (
    entries_in,
    forgotten_in,
    forgotten_together,
    merged,
    name_of_record,
    with_entries,
)
from certs.ledger.records.pruning import decides
from meshwright.records.content import Content, Fields
from meshwright.records.key import Key

CLOCKS_DIFFER: Final = timedelta(hours=1)
"""Longest time by which the clock of the server that removes certificates may be ahead of ours."""


def mend_proxy(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the fields that a proxy's record must have, or None if nothing of it is lost."""
    name = name_of_record(key)
    entries = entries_in(name, known.fields)
    # Nothing is known about the workload here, so whatever some server may have removed is no loss.
    later = now + CLOCKS_DIFFER
    removed = {*forgotten_in(known.fields), *forgotten_in(None if present is None else present.fields)}
    staying = {
        entry.serial
        for entry in entries
        if entry.serial not in removed and decides(entry, later, has_workload=False)
    }
    if present is None:
        return known.fields if staying else None
    stored = entries_in(name, present.fields)
    there = {entry.serial for entry in stored}
    wanted = merged((entry for entry in entries if entry.serial in staying | there), stored)
    fields = with_entries(present.fields, wanted) or present.fields
    if present.count <= known.count:
        # Other facts about the proxy, of which only the write with the highest count is right.
        fields = {**fields, **known.fields, **_certificates(fields), **_forgotten(known, present)}
    return None if fields == present.fields else fields


def is_revoked(fields: Fields) -> bool:
    """Return whether a proxy's record has a revoked certificate."""
    certificates = fields.get("certificates")
    values = certificates.values() if isinstance(certificates, dict) else ()
    return any(isinstance(value, dict) and "revoked_at" in value for value in values)


def _certificates(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name == "certificates"}


def _forgotten(known: Content, present: Content) -> Fields:
    """Return the removed certificates of both, so that none of them comes back with the next comparison."""
    return forgotten_together(forgotten_in(known.fields), forgotten_in(present.fields))
