"""Knowledge of one part of the program about its records: which losses of a store are none. A pure module."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from meshwright.records.content import Content, Fields
from meshwright.records.key import Key, is_within

Mend = Callable[[Key, Content, Content | None, datetime], Fields | None]
"""Return the fields that a record must have, or None if the store has lost nothing.

The arguments are the key, the content that this server has followed, and the present one, or None for a
record that is gone. The result for a record that is gone is None if the record may vanish, for example a join
token that ended long ago. Otherwise the result has everything of the present content, and what it lacks. The
function must be pure, and must find nothing to mend in its own result: each server mends until that holds.
Raises UnreadableContentError for a content that must be left as it is.
"""


def never(fields: Fields) -> bool:
    """Return False: no record of the domain is more urgent than others."""
    del fields
    return False


@dataclass(frozen=True, slots=True)
class Domain:
    """The records within a prefix.

    `mend` decides what the store has lost. `is_urgent` says which records are written again first, from the
    fields: those with a revocation. `needed_at_start` is True for records that a server must read before it
    can begin. While the store has not answered yet, a server reads them as they were followed last.
    """

    prefix: Key
    mend: Mend
    is_urgent: Callable[[Fields], bool] = never
    needed_at_start: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """The record by which two stores of different meshes are told apart: `is_same` compares two contents."""

    key: Key
    is_same: Callable[[Content, Content], bool]


def domain_of(domains: Iterable[Domain], key: Key) -> Domain | None:
    """Return the domain of a key or of a prefix, or None."""
    return next((domain for domain in domains if is_within(key, domain.prefix)), None)


def newest(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the known fields, unless a later write has replaced them: for records that never vanish.

    A later write has a higher count. With an equal count, two writes followed the same one, because the store
    went back in between; the followed one is written again.
    """
    del key, now
    if present is None:
        return known.fields
    if present.count > known.count or present.fields == known.fields:
        return None
    return known.fields
