"""When certificates are renewed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from certs.renewal import alarm_at, due, look_again_after, renew_at, renewed_by

START = datetime(2031, 1, 1, tzinfo=UTC)
HOUR = 3600


@dataclass(frozen=True)
class Life:
    """A validity of 40 hours, moved by `hours`."""

    serial: str = "1"
    hours: int = 0

    @property
    def not_before(self) -> datetime:
        """Return its beginning."""
        return START + timedelta(hours=self.hours)

    @property
    def not_after(self) -> datetime:
        """Return its end."""
        return self.not_before + timedelta(hours=40)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, True), (0, False), (18 * HOUR - 1, False), (22 * HOUR, True), (41 * HOUR, True)],
)
def test_a_certificate_is_due_after_half_of_its_life(seconds: int, expected: bool) -> None:
    """Never before 45 percent, always after 55, and before its life began (a clock set back)."""
    assert {due(Life(f"{n:x}"), START + timedelta(seconds=seconds)) for n in range(50)} == {expected}


def test_a_certificate_is_due_from_one_moment_on() -> None:
    """Its own, which a restart does not move."""
    life = Life("3f9a02")
    assert not due(life, renew_at(life) - timedelta(microseconds=1))
    assert due(life, renew_at(life))
    assert renew_at(Life("3f9a02")) == renew_at(life)


def test_certificates_of_one_moment_are_not_due_together() -> None:
    """Even where an issuer counts its serials: each hour of the four has its part of a thousand."""
    hours = [int((renew_at(Life(f"{n:x}")) - START) / timedelta(hours=1)) for n in range(1000)]
    assert {hour: 150 < hours.count(hour) < 350 for hour in set(hours)} == dict.fromkeys(range(18, 22), True)


def test_it_is_late_after_all_could_have_been_renewed_and_alarming_in_the_last_quarter() -> None:
    """In this order."""
    assert (renewed_by(Life()) - START, alarm_at(Life()) - START) == (
        timedelta(hours=22),
        timedelta(hours=30),
    )


@pytest.mark.parametrize(
    ("left", "wait"),
    [
        (timedelta(hours=40), timedelta(hours=1)),
        (timedelta(hours=8), timedelta(hours=1)),
        (timedelta(hours=4), timedelta(minutes=30)),
        (timedelta(minutes=8), timedelta(minutes=1)),
        (timedelta(minutes=2), timedelta(seconds=30)),
        (timedelta(seconds=10), timedelta(seconds=11)),
        (timedelta(0), timedelta(seconds=1)),
        (timedelta(hours=-1), timedelta(seconds=30)),
    ],
)
def test_what_ends_soon_is_looked_at_sooner(left: timedelta, wait: timedelta) -> None:
    """So that one of an hour, below a CA that ends then, is renewed in time, and none is shown that ended."""
    assert look_again_after(Life(), Life().not_after - left) == wait
