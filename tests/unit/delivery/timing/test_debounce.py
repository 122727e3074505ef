"""When waves begin."""

import pytest

from meshwright.delivery.timing.debounce import Changes, Matter, Pace, PendingChanges, begin_at

PACE = Pace(quiet=0.1, longest=1.0)


def test_the_first_change_ever_goes_at_once() -> None:
    """Nothing was before it."""
    assert begin_at(PendingChanges(first=5.0, last=5.0), PACE) == 5.0


def test_the_first_change_after_quiet_goes_at_once() -> None:
    """The last wave began long before."""
    assert begin_at(PendingChanges(first=5.0, last=5.0, wave=4.5), PACE) == 5.0


def test_a_change_that_stays_alone_waits_for_quiet_after_the_last_wave() -> None:
    """Nobody waits longer than that for one change that comes a little after another."""
    assert begin_at(PendingChanges(first=5.001, last=5.001, wave=5.0), PACE) == 5.0 + 0.1
    assert begin_at(PendingChanges(first=5.09, last=5.09, wave=5.0), PACE) == 5.0 + 0.1


def test_a_burst_goes_when_it_pauses() -> None:
    """Several changes after a wave wait for quiet after the last of them."""
    assert begin_at(PendingChanges(first=5.05, last=5.06, wave=5.0), PACE) == 5.06 + 0.1
    assert begin_at(PendingChanges(first=5.05, last=5.3, wave=5.0), PACE) == 5.3 + 0.1


def test_a_burst_without_a_pause_goes_after_the_longest_wait() -> None:
    """Changes every 50 ms do not starve the proxies."""
    assert begin_at(PendingChanges(first=5.05, last=6.04, wave=5.0), PACE) == 5.05 + 1.0


PACES = {
    Matter.POLICY: PACE,
    Matter.ENDPOINTS: Pace(quiet=0.5, longest=3.0),
    Matter.ADMISSIONS: Pace(quiet=0.1, longest=1.0),
}


def test_changes_are_taken_together_and_once() -> None:
    """A wave takes what was noted; what comes after it belongs to the next."""
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
            [(1.1 + each * 0.4, ENDPOINTS) for each in range(8)], 4.1, id="and is no longer than its longest"
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
def test_each_matter_has_its_pace(noted: list[tuple[float, Matter]], due: float) -> None:
    """Seen from a wave that began at 1.0."""
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
def test_admissions_wait_for_as_long_as_it_takes_to_tell_of_them(proxies: int, due: float) -> None:
    """While everybody is told of everybody, a wave for each that comes leaves no time for who comes."""
    changes = Changes()
    changes.take(1.0)
    changes.concerned(proxies)
    changes.note(1.05, Matter.ENDPOINTS)
    assert changes.due(PACES) == pytest.approx(1.5)  # what is no admission waits for none of them
    changes.take(1.1)
    changes.note(1.2, Matter.ADMISSIONS)
    assert changes.due(PACES) == pytest.approx(due)
