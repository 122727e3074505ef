"""Losses of a store in a join token's record or in a use of a token, and the fields to write again. Pure.

A removal is no loss if the token ended long before, because servers remove only such tokens. A use that is
given back stays as a record without a key.
"""

from datetime import datetime, timedelta
from typing import Final

from meshwright.enrolment.store.contract import REMEMBERED
from meshwright.enrolment.store.token_fields import (
    end_of_token,
    is_given_back,
    token_and_slot,
    with_former_revocation,
)
from meshwright.records.content import Content, Fields
from meshwright.records.key import Key

CLOCKS_DIFFER: Final = timedelta(hours=1)
"""Longest time by which the clock of the server that removes tokens may be ahead of ours."""


def mend_token(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the fields that a token's record must have, or that of a use; None if nothing of it is lost."""
    _, slot = token_and_slot(key)
    if present is None:
        end = end_of_token(known.fields)
        may_vanish = end is None or now > end + REMEMBERED - CLOCKS_DIFFER
        return None if may_vanish or (slot is not None and is_given_back(known.fields)) else known.fields
    if slot is None:
        return with_former_revocation(present.fields, known.fields)
    is_older = present.count <= known.count
    return (
        known.fields
        if is_older and is_given_back(present.fields) and not is_given_back(known.fields)
        else None
    )


def is_revoked(fields: Fields) -> bool:
    """Return whether a token is revoked."""
    return fields.get("revoked_at") is not None
