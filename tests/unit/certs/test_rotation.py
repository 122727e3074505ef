"""When certificates are renewed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from certs.rotation import due, next_renewal, renew_at

START = datetime(2031, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Life:
    """A validity of 30 hours, moved by `hours`."""

    hours: int = 0

    @property
    def not_before(self) -> datetime:
        """Return its beginning."""
        return START + timedelta(hours=self.hours)

    @property
    def not_after(self) -> datetime:
        """Return its end."""
        return self.not_before + timedelta(hours=30)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, True), (0, False), (20 * 3600 - 1, False), (20 * 3600, True), (31 * 3600, True)],
)
def test_a_certificate_is_due_after_two_thirds_of_its_life(seconds: int, expected: bool) -> None:
    """Due exactly from two thirds on, ever after, and before its life began (a clock set back)."""
    assert due(Life(), START + timedelta(seconds=seconds)) is expected


def test_the_earliest_renewal_is_the_next() -> None:
    """Whoever waits, waits for the first; with nothing to renew there is nothing to wait for."""
    assert next_renewal([Life(3), Life(1), Life(2)]) == renew_at(Life(1)) == START + timedelta(hours=21)
    assert next_renewal([]) is None
