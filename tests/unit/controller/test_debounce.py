"""When waves begin."""

from controller.debounce import Changes, Pace, Pending, begin_at

PACE = Pace(quiet=0.1, longest=1.0)


def test_the_first_change_ever_goes_at_once() -> None:
    """Nothing was before it."""
    assert begin_at(Pending(first=5.0, last=5.0), PACE) == 5.0


def test_the_first_change_after_quiet_goes_at_once() -> None:
    """The last wave began long before."""
    assert begin_at(Pending(first=5.0, last=5.0, wave=4.5), PACE) == 5.0


def test_a_burst_goes_when_it_pauses() -> None:
    """The second change of a burst waits for quiet after the last one."""
    assert begin_at(Pending(first=5.05, last=5.05, wave=5.0), PACE) == 5.05 + 0.1
    assert begin_at(Pending(first=5.05, last=5.3, wave=5.0), PACE) == 5.3 + 0.1


def test_a_burst_without_a_pause_goes_after_the_longest_wait() -> None:
    """Changes every 50 ms do not starve the proxies."""
    assert begin_at(Pending(first=5.05, last=6.04, wave=5.0), PACE) == 5.05 + 1.0


def test_changes_are_taken_together_and_once() -> None:
    """A wave takes what was noted; what comes after it belongs to the next."""
    changes = Changes()
    assert changes.due(PACE) is None
    changes.note(1.0)
    assert changes.due(PACE) == 1.0
    assert changes.take(1.25) == 0.25
    assert changes.due(PACE) is None
    changes.note(1.3)
    assert changes.due(PACE) == 1.3 + 0.1
