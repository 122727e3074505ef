"""When an empty answer is believed."""

from datetime import timedelta

import pytest

from meshwright.providers.guard import Guarded, guard
from meshwright.providers.moments import Moment

NOW = timedelta(hours=3)
WAIT = timedelta(seconds=30)
SOON, LATE = NOW + WAIT - timedelta(seconds=1), NOW + WAIT
HELD = Guarded("ab", NOW)


@pytest.mark.parametrize(
    ("before", "answer", "now", "after"),
    [
        (Guarded(""), "ab", NOW, Guarded("ab")),
        (Guarded("ab"), "c", NOW, Guarded("c")),
        (Guarded(""), "", NOW, Guarded("")),
        (Guarded("ab"), None, NOW, Guarded("ab")),
        (Guarded("ab"), "", NOW, HELD),
        (HELD, "", SOON, HELD),
        (HELD, "", LATE, Guarded("")),
        (HELD, None, LATE, HELD),
        (HELD, "a", SOON, Guarded("a")),
    ],
)
def test_only_emptiness_waits(
    before: Guarded[str], answer: str | None, now: Moment, after: Guarded[str]
) -> None:
    """Anything else is believed at once, an error never, and what comes back ends the waiting."""
    assert guard(before, answer, now, WAIT) == after


def test_without_a_wait_emptiness_is_believed_at_once() -> None:
    """Zero turns the guard off: what the cases above would look like without it."""
    assert guard(Guarded("ab"), "", NOW, timedelta(0)) == Guarded("")
