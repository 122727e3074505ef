"""Tests of the measurement of changes, and of the detection of a quiet process."""

import itertools
from collections.abc import Iterator

import pytest

from benchmarks.measurements import change_cost as measuring
from benchmarks.measurements.change_cost import distribution
from benchmarks.mesh import arguments, cases
from benchmarks.processes.quiet import LIMIT, PAUSE, SLACK, WINDOW, CpuUsage, idled, until_quiet


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0], (1, 1, 1)), ([3.0, 1.0, 2.0], (2, 3, 3)), ([float(n) for n in range(1, 201)], (100, 198, 200))],
)
def test_percentiles_are_of_the_nearest_rank(values: list[float], expected: tuple[float, ...]) -> None:
    """One, few and many values are tested."""
    result = distribution(values)
    assert (result.p50, result.p99, result.max) == expected


class Process:
    """A process whose CPU clock follows a list: its use in each window; `sleep` is the clock."""

    def __init__(self, used: Iterator[float]) -> None:
        self.moment = 100.0
        self.used = 5.0
        self._windows = used

    def cpu(self) -> float:
        """Return the used CPU time."""
        return self.used

    def now(self) -> float:
        """Return the current time."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Let time pass, and the process work."""
        self.moment += seconds
        self.used += next(self._windows)


def test_quiet_begins_at_the_first_idle_window_after_the_pause() -> None:
    """CPU time of the pause counts in any case, and the quiet window is the last that counts."""
    process = Process(iter([0.5, 0.1, SLACK + 0.0021, 0.0035, 9.0]))
    rest = until_quiet(process.cpu, 0.01, 100.0, process.now, process.sleep)
    assert rest.cpu == pytest.approx(5 + 0.5 + 0.1 + SLACK + 0.0021 + 0.0035)
    assert rest.moment == pytest.approx(100 + PAUSE + 3 * WINDOW)
    assert not rest.restless


def test_process_that_never_rests_is_measured_and_marked() -> None:
    """Without the limit, a benchmark would not end."""
    process = Process(itertools.repeat(0.1))
    rest = until_quiet(process.cpu, 0.01, 100.0, process.now, process.sleep)
    assert rest.restless
    assert rest.moment == pytest.approx(100 + LIMIT, abs=2 * WINDOW)


def test_idle_cost_of_a_change_is_that_of_the_windows_around_it() -> None:
    """The change costs 2 ms, in a process whose idle cost decreases."""
    process = Process(iter([0.010, 0.009 + 0.002, 0.008]))
    before, change, after = (idled(process.cpu, 1.0, process.now, process.sleep) for _ in range(3))
    assert change.beyond(before, after) == pytest.approx(0.002)


def test_idle_windows_count_by_the_second() -> None:
    """A longer window has no more weight, and a longer change is charged with more idle time."""
    assert CpuUsage(0.020, 2.0).beyond(CpuUsage(0.004, 1.0), CpuUsage(0.024, 4.0)) == pytest.approx(0.010)


def test_mesh_is_measured_with_none_with_concerned_and_with_all_sidecars() -> None:
    """Beyond a thousand services, only some connect.

    Of permissive meshes, only the largest is measured with sidecars.
    """
    result = list(cases([500, 1000, 4000], [250, 500], 200))
    assert [(case.services, case.permissive, case.stages, case.whole) for case in result] == [
        (500, False, (0, 12, 1000), False),
        (1000, False, (0, 12, 2000), True),
        (4000, False, (0, 12, 200), False),
        (250, True, (0,), False),
        (500, True, (0, 500, 1000), False),
    ]


def test_sidecars_concerned_by_the_move_connect_first() -> None:
    """They follow the two sidecars of the moved service.

    Each name is used once, and there are as many as in the last stage.
    """
    (case,) = cases([100], [], 200)
    services = [name.split(".")[1] for name in case.names]
    assert services[:2] == ["service-17"] * 2
    assert set(services[2:12]) == {f"service-{(17 - step) % 100}" for step in (1, 7, 31, 43, 68)}
    assert len(set(case.names)) == len(case.names) == 200


def test_quick_run_keeps_the_chosen_options() -> None:
    """`--quick` is small in either mode, and does not restore an omitted one."""
    answer = arguments(["--quick", "--services", "--moves", "0"])
    assert (answer.services, answer.permissive, answer.moves) == ([], [50], 0)


def test_expensive_change_is_repeated_at_least_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value would be no median; all repetitions might take an hour."""
    monkeypatch.setattr(measuring, "SERIES", -1.0)
    assert list(measuring.unless_dear(9)) == [0, 1]
    monkeypatch.undo()
    assert list(measuring.unless_dear(9)) == list(range(9))
