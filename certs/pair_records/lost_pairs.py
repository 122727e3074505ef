"""Losses of a store in a service's record, and the fields to write again. A pure module."""

from datetime import datetime

from certs.pair_records.fields import end_in
from meshwright.records.content import Content, Fields
from meshwright.records.key import Key


def mend_pair(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the fields that a service's record must have, or None if nothing of it is lost.

    Only a valid certificate is written again. Without it, servers would issue another one, and send it to all
    proxies of the service.
    """
    del key
    end = end_in(known.fields)
    if end is None or end <= now or known.fields == (None if present is None else present.fields):
        return None
    if present is None:
        return known.fields
    if present.count > known.count:
        return None
    other = end_in(present.fields)
    return known.fields if other is None or other < end else None
