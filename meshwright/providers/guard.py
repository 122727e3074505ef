"""When to believe a source that suddenly says nothing: only after it has said so for a while.

A share that is not mounted, an emptied directory and a zone that was lost look like a wish to remove
everything, and seldom are one.
"""

from collections.abc import Sized
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeVar

from meshwright.providers.moments import Moment

HOLD: Final = timedelta(seconds=30)
"""How long an empty answer is held back if nothing else is said."""

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True, slots=True)
class GuardedValue(Generic[T]):
    """What is in force, and since when an empty answer is held back from it, None where none is."""

    in_force: T
    held_since: Moment | None = None


def guard(before: GuardedValue[T], answer: T | None, now: Moment, wait: timedelta) -> GuardedValue[T]:
    """Return what is in force after an answer; None is an error, which never changes anything.

    An empty answer where there was something is believed when it has been empty for `wait`; nothing else
    is held back. With a `wait` of zero nothing is.
    """
    if answer is None:
        return before
    if len(answer) or not len(before.in_force):
        return GuardedValue(answer)
    since = before.held_since or now
    return GuardedValue(answer) if now - since >= wait else GuardedValue(before.in_force, since)
