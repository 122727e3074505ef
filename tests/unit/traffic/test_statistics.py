"""Tests of figures: sums, success rates and quantiles."""

import pytest

from meshwright.traffic.statistics import BOUNDS_MS, CLASSES, TIMES, Figures


def times(**below: int) -> tuple[int, ...]:
    """Return counts by time: `ms_5=3` for three calls below 5 ms, `more=1` for one above all bounds."""
    return (*(below.get(f"ms_{bound}", 0) for bound in BOUNDS_MS), below.get("more", 0))


ONE = Figures((1, 2, 3, 4, 5), tuple(range(TIMES)), 6, 7, 8, 9, 10, 11, 12, 13)


def test_figures_are_added_number_by_number() -> None:
    """`Figures.from_numbers` reads the list that `numbers` returns, and empty figures change no sum."""
    assert Figures.from_numbers(ONE.numbers()) == ONE
    assert ONE + Figures() == ONE
    both = ONE + ONE
    assert both == Figures(
        (2, 4, 6, 8, 10), tuple(2 * n for n in range(TIMES)), 12, 14, 16, 18, 20, 22, 24, 26
    )
    assert len(ONE.numbers()) == CLASSES + TIMES + 8


def test_success_rate_counts_server_errors_and_grpc_failures() -> None:
    """A 4xx response is the caller's mistake; a gRPC failure is in trailers and counted besides statuses.

    Without requests there is no rate.
    """
    assert Figures().success is None
    assert Figures((0, 8, 0, 2, 0)).success == 1.0
    assert Figures((0, 8, 0, 0, 2)).success == 0.8
    assert Figures((0, 9, 0, 0, 1), grpc_failed=4).success == 0.5
    assert Figures((0, 1, 0, 0, 0), grpc_failed=4).success == 0.0


@pytest.mark.parametrize(
    ("counted", "part", "expected"),
    [
        (times(), 0.5, None),
        (times(ms_5=10), 0.5, 2.5),
        (times(ms_5=10), 1.0, 5.0),
        (times(ms_5=50, ms_250=50), 0.5, 5.0),
        (times(ms_5=50, ms_250=50), 0.75, 175.0),
        (times(ms_5=98, ms_10000=2), 0.99, 6250.0),
        (times(ms_5=98, more=2), 0.99, 10_000.0),
        (times(more=1), 0.5, 10_000.0),
    ],
)
def test_quantiles_equal_those_of_prometheus(
    counted: tuple[int, ...], part: float, expected: float | None
) -> None:
    """Calls are spread evenly within a bucket, and the last bound stands for everything above.

    See https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile.
    """
    number = Figures(by_time=counted).quantile_ms(part)
    assert number == (None if expected is None else pytest.approx(expected))
