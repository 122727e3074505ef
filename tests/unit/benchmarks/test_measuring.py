"""What the benchmark says of its figures follows from them."""

from dataclasses import replace

import pytest

from benchmarks.measuring import Cost, distribution
from benchmarks.mesh_tables import figures
from benchmarks.moving import Latency
from benchmarks.plane import Start
from benchmarks.processes import Memory
from benchmarks.programs import Distribution
from benchmarks.sizes import Connecting, Sized

NONE = Distribution(0, 0, 0)
COST = Cost("one endpoint moves", 500, 100, 7.0, 9.0, 9.5, NONE, 10, 0, 0, 10, 2900, 40, 1, 5, 0)


def _sized(services: int, *costs: Cost) -> Sized:
    memory = Memory(380, 350, 390)
    connecting = Connecting(2 * services, 1.0, NONE, 10, 1000)
    return Sized(services, Start(5, 4), connecting, memory, memory, 0.01, costs, None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0], (1, 1, 1)), ([3.0, 1.0, 2.0], (2, 3, 3)), ([float(n) for n in range(1, 201)], (100, 198, 200))],
)
def test_percentiles_are_of_the_nearest_rank(values: list[float], expected: tuple[float, ...]) -> None:
    """Of one value, of few, of many."""
    found = distribution(values)
    assert (found.p50, found.p99, found.max) == expected


def test_figures_are_set_beside_what_is_wanted() -> None:
    """Each figure of the table, reached or not."""
    setting = replace(COST, change="a setting", last_ack_ms=Distribution(4000, 4500, 5100), proxies=2000)
    sizes = [_sized(500, COST), _sized(1000, replace(COST, cpu_ms=8.4, foreign=1), setting)]
    latency = Latency(200, 1000, Distribution(30, 250, 300), NONE)
    assert [(figure, reached) for figure, _, _, reached in figures(sizes, latency)] == [
        ("P5, 500 services", True),
        ("P5, 1000 services", False),
        ("P6, 500 to 1000", False),
        ("P7, from nothing", True),
        ("P8, a mesh-wide setting", False),
        ("P9, memory", True),
        ("P12, 200 sidecars", True),
    ]


def test_one_byte_for_somebody_else_is_a_figure_missed() -> None:
    """However little CPU it took."""
    ((_, _, measured, reached),) = figures([_sized(500, replace(COST, cpu_ms=1.0, foreign=2))], None)
    assert (measured, reached) == ("1.0 ms, 10 sidecars, 2 others, 0 missed", False)
