"""Tests of the debounce: the time at which a wave begins after changes."""

import pytest

from meshwright.delivery.timing.debounce import Changes, Matter, Pace, PendingChanges, begin_at

PACE = Pace(quiet=0.1, longest=1.0)


def test_first_change_ever_is_due_at_once() -> None:
    """There was no wave before it."""
    assert begin_at(PendingChanges(first=5.0, last=5.0), PACE) == 5.0


def test_first_change_after_a_quiet_time_is_due_at_once() -> None:
    """The last wave began more than the quiet time before."""
    assert begin_at(PendingChanges(first=5.0, last=5.0, wave=4.5), PACE) == 5.0


def test_single_change_soon_after_a_wave_waits_for_the_quiet_time() -> None:
    """The quiet time counts from the last wave, so that a single change waits no longer."""
    assert begin_at(PendingChanges(first=5.001, last=5.001, wave=5.0), PACE) == 5.0 + 0.1
    assert begin_at(PendingChanges(first=5.09, last=5.09, wave=5.0), PACE) == 5.0 + 0.1


def test_burst_is_due_when_it_pauses() -> None:
    """Several changes after a wave wait for the quiet time after the last of them."""
    assert begin_at(PendingChanges(first=5.05, last=5.06, wave=5.0), PACE) == 5.06 + 0.1
    assert begin_at(PendingChanges(first=5.05, last=5.3, wave=5.0), PACE) == 5.3 + 0.1


def test_burst_without_a_pause_is_due_after_the_longest_wait() -> None:
    """Changes every 50 ms must not starve the proxies."""
    assert begin_at(PendingChanges(first=5.05, last=6.04, wave=5.0), PACE) == 5.05 + 1.0


PACES = {
    Matter.POLICY: PACE,
    Matter.ENDPOINTS: Pace(quiet=0.5, longest=3.0),
    Matter.ADMISSIONS: Pace(quiet=0.1, longest=1.0),
}


def test_wave_takes_all_noted_changes_once() -> None:
    """A change that is noted after a wave took the others belongs to the next wave."""
    changes = Changes()
    assert changes.due(PACES) is None
    changes.note(1.0)
    assert changes.due(PACES) == 1.0
    assert changes.take(1.25) == 1.0
    assert changes.due(PACES) is None
    assert changes.take(1.26) == 1.26
    changes.note(1.3)
    assert changes.due(PACES) == 1.26 + 0.1
    changes.note(1.31)
    assert changes.due(PACES) == 1.31 + 0.1


ENDPOINTS, POLICY = Matter.ENDPOINTS, Matter.POLICY


@pytest.mark.parametrize(
    ("noted", "due"),
    [
        pytest.param([(1.1, ENDPOINTS)], 1.5, id="endpoints have their own quiet"),
        pytest.param([(1.1, ENDPOINTS), (1.4, ENDPOINTS)], 1.9, id="which begins anew with each of a burst"),
        pytest.param(
            [(1.1 + number * 0.4, ENDPOINTS) for number in range(8)],
            4.1,
            id="and is no longer than its longest",
        ),
        pytest.param([(1.05, ENDPOINTS), (1.07, POLICY)], 1.1, id="a policy goes at its own pace"),
        pytest.param(
            [(1.05, ENDPOINTS), (1.07, POLICY), (1.15, ENDPOINTS)], 1.1, id="endpoints do not put it off"
        ),
        pytest.param([(1.05, POLICY), (1.06, ENDPOINTS)], 1.1, id="nor do they wait for more if it goes"),
        pytest.param([(1.05, ENDPOINTS), (1.3, POLICY)], 1.3, id="a policy after its quiet goes at once"),
        pytest.param([(1.5, ENDPOINTS)], 1.5, id="endpoints after theirs as well"),
    ],
)
def test_each_matter_has_its_own_pace(noted: list[tuple[float, Matter]], due: float) -> None:
    """The previous wave began at 1.0 s."""
    changes = Changes()
    changes.take(1.0)
    for now, matter in noted:
        changes.note(now, matter)
    assert changes.due(PACES) == pytest.approx(due)


@pytest.mark.parametrize(
    ("proxies", "due"),
    [
        pytest.param(10, 1.2, id="of a few at the pace of endpoints"),
        pytest.param(1000, 5.1, id="of a thousand after four seconds"),
        pytest.param(1_000_000, 6.1, id="and of any number after five"),
    ],
)
def test_admissions_wait_longer_the_more_proxies_are_concerned(proxies: int, due: float) -> None:
    """With a wave for each admission, the pushes to all proxies would leave no time for new proxies.

    The wait is at most five seconds, and other changes do not wait.
    """
    changes = Changes()
    changes.take(1.0)
    changes.concerned(proxies)
    changes.note(1.05, Matter.ENDPOINTS)
    assert changes.due(PACES) == pytest.approx(1.5)  # other changes do not wait for admissions
    changes.take(1.1)
    changes.note(1.2, Matter.ADMISSIONS)
    assert changes.due(PACES) == pytest.approx(due)
