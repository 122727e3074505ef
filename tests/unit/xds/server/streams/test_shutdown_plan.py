"""Tests of the order and the times in which a stopping server ends its calls."""

import pytest

from xds.server.streams.shutdown_plan import PlannedEnd, planned_ends


@pytest.mark.parametrize(
    ("numbers", "seconds", "expected"),
    [
        ((), 20.0, ()),
        ((8,), 20.0, ((0.0, 8),)),
        ((7, 3, 9, 4), 20.0, ((0.0, 3), (5.0, 4), (10.0, 7), (15.0, 9))),
        ((5, 2, 6), 0.0, ((0.0, 2), (0.0, 5), (0.0, 6))),
    ],
)
def test_calls_end_oldest_first_at_equal_distances(
    numbers: tuple[int, ...], seconds: float, expected: tuple[tuple[float, int], ...]
) -> None:
    """The first call ends at once, the last one before the deadline; without spread, all together."""
    assert planned_ends(numbers, seconds) == tuple(PlannedEnd(at, number) for at, number in expected)


def test_thousands_of_calls_end_at_a_steady_rate() -> None:
    """In each of 20 seconds 1500 of 30,000 calls end, so that no second is a burst for the other servers."""
    rates = [0] * 20
    for planned in planned_ends(range(30_000), 20.0):
        rates[int(planned.at + 1e-9)] += 1
    assert rates == [1500] * 20
