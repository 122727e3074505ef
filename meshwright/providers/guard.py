"""Delay for empty answers: a source that is suddenly empty is believed only after a while.

An unmounted share, an emptied directory or a lost DNS zone looks like a request to remove everything, and is
usually an accident.
"""

from collections.abc import Sized
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeVar

from meshwright.providers.moments import Moment

HOLD: Final = timedelta(seconds=30)
"""Default time for which an empty answer is held back."""

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True, slots=True)
class GuardedValue(Generic[T]):
    """The accepted value, and the moment since when an empty answer is not accepted (None: without one)."""

    in_force: T
    held_since: Moment | None = None


def guard(before: GuardedValue[T], answer: T | None, now: Moment, wait: timedelta) -> GuardedValue[T]:
    """Return the value in force after an answer; None means an error, which never changes the value.

    An empty answer after a value with content is accepted once the answers have been empty for `wait`; with a
    `wait` of zero it is accepted at once. Any other answer is accepted at once.
    """
    if answer is None:
        return before
    if len(answer) or not len(before.in_force):
        return GuardedValue(answer)
    since = before.held_since or now
    return GuardedValue(answer) if now - since >= wait else GuardedValue(before.in_force, since)
