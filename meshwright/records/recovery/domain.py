"""Rules of one part of the program for the recovery of its records. A pure module."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from meshwright.records.content import Content, Fields
from meshwright.records.key import Key, is_within

Mend = Callable[[Key, Content, Content | None, datetime], Fields | None]
"""Return the fields that a record must have, or None if the store has lost nothing.

The arguments are the key, the followed content, the present content (None for a missing record), and the
time. For a missing record the result is None if the record may vanish, for example a join token that ended
long ago. Otherwise the result has all of the present content, and the lost fields. For example, the followed
record of a proxy has two certificates, and the present one has only the first: the result has both.

The function must be pure, and must find no loss in its own result: otherwise a server would write for ever.
Raises UnreadableContentError for a content to be left unchanged.
"""


def never(fields: Fields) -> bool:
    """Return False: no record of the domain is more urgent than others."""
    del fields
    return False


@dataclass(frozen=True, slots=True)
class Domain:
    """The records within a prefix.

    `mend` decides which fields the store has lost. `is_urgent` returns, from the fields, whether a record is
    written again first, for example because of a revocation. `needed_at_start` is True for records without
    which a server cannot start. Until the store has answered, a server reads the kept form of these records.
    """

    prefix: Key
    mend: Mend
    is_urgent: Callable[[Fields], bool] = never
    needed_at_start: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """The record that identifies the mesh of a store: `is_same` compares two contents."""

    key: Key
    is_same: Callable[[Content, Content], bool]


def domain_of(domains: Iterable[Domain], key: Key) -> Domain | None:
    """Return the domain of a key or of a prefix, or None."""
    return next((domain for domain in domains if is_within(key, domain.prefix)), None)


def newest(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the known fields, unless a later write has replaced them: for records that never vanish.

    A later write has a higher count. With an equal count, two writes followed the same one, because the store
    was restored in between; the followed content is written again.
    """
    del key, now
    if present is None:
        return known.fields
    if present.count > known.count or present.fields == known.fields:
        return None
    return known.fields
