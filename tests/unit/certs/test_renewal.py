"""Tests of the times at which certificates are renewed."""

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
        """Return the begin of the validity."""
        return START + timedelta(hours=self.hours)

    @property
    def not_after(self) -> datetime:
        """Return the end of the validity."""
        return self.not_before + timedelta(hours=40)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, True), (0, False), (18 * HOUR - 1, False), (22 * HOUR, True), (41 * HOUR, True)],
)
def test_certificate_is_due_after_about_half_of_its_life(seconds: int, expected: bool) -> None:
    """It is never due before 45 % and always after 55 %.

    It is also due before its validity begins, which means that a clock was set back.
    """
    assert {due(Life(f"{n:x}"), START + timedelta(seconds=seconds)) for n in range(50)} == {expected}


def test_certificate_is_due_from_one_fixed_moment() -> None:
    """The moment depends only on the certificate, so a restart does not move it."""
    life = Life("3f9a02")
    assert not due(life, renew_at(life) - timedelta(microseconds=1))
    assert due(life, renew_at(life))
    assert renew_at(Life("3f9a02")) == renew_at(life)


def test_servers_renew_a_shared_certificate_one_after_the_other() -> None:
    """The first one at once, and the others only if it has not; the delay is small beside the life."""
    life = Life("3f9a02")
    assert [(renew_at(life, turn) - renew_at(life)).total_seconds() for turn in (0, 1, 2, 10**6)] == [
        0, 5, 10, 2 * HOUR
    ]  # fmt: skip
    assert not due(life, renew_at(life, 2) - timedelta(microseconds=1), 2)
    assert due(life, renew_at(life, 2), 2)
    assert due(life, START - timedelta(seconds=1), 2), "a clock that was set back is no matter of turns"


def test_certificates_issued_at_one_moment_are_due_at_different_times() -> None:
    """Even with counted serials, each of four hours gets about a quarter of a thousand renewals."""
    hours = [int((renew_at(Life(f"{n:x}")) - START) / timedelta(hours=1)) for n in range(1000)]
    assert {hour: 150 < hours.count(hour) < 350 for hour in set(hours)} == dict.fromkeys(range(18, 22), True)


def test_renewal_is_late_after_55_percent_and_alarming_after_75_percent() -> None:
    """Of 40 hours of validity, these are the hours 22 and 30."""
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
def test_certificate_that_ends_soon_is_checked_sooner(left: timedelta, wait: timedelta) -> None:
    """A certificate may be short because its CA ends soon.

    It must be renewed in time, and never used after its end.
    """
    assert look_again_after(Life(), Life().not_after - left) == wait
