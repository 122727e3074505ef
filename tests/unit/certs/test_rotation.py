"""When certificates are renewed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from certs.rotation import due

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
