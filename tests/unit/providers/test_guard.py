"""When an empty answer is believed."""

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
def test_only_emptiness_waits(
    before: GuardedValue[str], answer: str | None, now: Moment, after: GuardedValue[str]
) -> None:
    """Anything else is believed at once, an error never, and what comes back ends the waiting."""
    assert guard(before, answer, now, WAIT) == after


def test_without_a_wait_emptiness_is_believed_at_once() -> None:
    """Zero turns the guard off: what the cases above would look like without it."""
    assert guard(GuardedValue("ab"), "", NOW, timedelta(0)) == GuardedValue("")
