"""Tests of the guard that holds back empty answers."""

from datetime import timedelta

import pytest

from meshwright.providers.guard import GuardedValue, guard
from meshwright.providers.moments import Moment

NOW = timedelta(hours=3)
WAIT = timedelta(seconds=30)
SOON, LATE = NOW + WAIT - timedelta(seconds=1), NOW + WAIT
HELD = GuardedValue("ab", NOW)


@pytest.mark.parametrize(
    ("before", "answer", "now", "after"),
    [
        (GuardedValue(""), "ab", NOW, GuardedValue("ab")),
        (GuardedValue("ab"), "c", NOW, GuardedValue("c")),
        (GuardedValue(""), "", NOW, GuardedValue("")),
        (GuardedValue("ab"), None, NOW, GuardedValue("ab")),
        (GuardedValue("ab"), "", NOW, HELD),
        (HELD, "", SOON, HELD),
        (HELD, "", LATE, GuardedValue("")),
        (HELD, None, LATE, HELD),
        (HELD, "a", SOON, GuardedValue("a")),
    ],
)
def test_only_an_empty_answer_is_held(
    before: GuardedValue[str], answer: str | None, now: Moment, after: GuardedValue[str]
) -> None:
    """Other answers are used at once, an error never changes the value, and a new value ends the hold."""
    assert guard(before, answer, now, WAIT) == after


def test_empty_answer_is_used_at_once_with_a_hold_of_zero() -> None:
    """A hold of 0 turns the guard off, which is the negative control of the cases above."""
    assert guard(GuardedValue("ab"), "", NOW, timedelta(0)) == GuardedValue("")
