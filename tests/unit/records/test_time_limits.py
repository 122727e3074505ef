"""Tests of the time limits of both engines, as values."""

from typing import Final

from meshwright.etcd.client import LIMITS
from meshwright.records.kubernetes.times import TIMES

SLOW_SECONDS: Final = 2.0
"""Seconds that each call of a slow store takes."""

AGAIN_SECONDS: Final = 5.0
"""Longest pause after an outage until changes of other servers, above all revocations, are followed again."""


def test_slow_store_can_be_read_and_written() -> None:
    """A call of two seconds is within every limit; with several members, each of two gets half of a read."""
    limits = (TIMES.read, TIMES.write, LIMITS.read / 2, LIMITS.write)
    assert [limit > SLOW_SECONDS for limit in limits] == [True] * len(limits)


def test_changes_are_followed_soon_after_a_long_outage() -> None:
    """The pause does not grow with the length of the outage."""
    assert TIMES.pacing.pause(failures=100, chance=1.0) <= AGAIN_SECONDS
