"""Tests of the time limits of both engines, as values."""

from typing import Final

from meshwright.etcd.client import LIMITS
from meshwright.records.kubernetes.times import TIMES

SLOW_SECONDS: Final = 2.0
"""Seconds that each call of a slow store takes."""


def test_slow_store_can_be_read_and_written() -> None:
    """A call of two seconds is within every limit; with several members, each of two gets half of a read."""
    limits = (TIMES.read, TIMES.write, LIMITS.read / 2, LIMITS.write)
    assert [limit > SLOW_SECONDS for limit in limits] == [True] * len(limits)
