"""Tests of repeated events: the first is logged at once, the others as one count for each period."""

from meshwright.serving.repeats import MOST_KINDS, OTHER, Repeats


def test_first_event_of_a_kind_is_logged_and_others_are_counted() -> None:
    """A flood of one kind gives one line now and one for each period."""
    repeats = Repeats(60.0)
    assert [repeats.first("bad", now) for now in (0.0, 1.0, 2.0, 59.0)] == [True, False, False, False]
    assert repeats.due(59.9) == {}
    assert repeats.due(60.0) == {"bad": 3}
    assert not repeats.first("bad", 61.0)
    assert repeats.due(120.0) == {"bad": 1}


def test_kind_without_events_in_a_period_is_forgotten() -> None:
    """The next event of the kind is a first one again."""
    repeats = Repeats(60.0)
    assert repeats.first("bad", 0.0)
    assert repeats.due(60.0) == {}
    assert repeats.next_due() is None
    assert repeats.first("bad", 61.0)


def test_excess_kinds_share_one_count() -> None:
    """A client that invents kinds cannot fill the log with a line for each."""
    repeats = Repeats(60.0)
    lines = sum(repeats.first(f"kind {number}", 0.0) for number in range(1000))
    assert lines == MOST_KINDS + 1
    assert repeats.due(60.0) == {OTHER: 1000 - MOST_KINDS - 1}


def test_rest_of_the_counts_is_returned_at_the_end() -> None:
    """No count is lost when the server ends."""
    repeats = Repeats(60.0)
    for now in (0.0, 1.0, 2.0):
        repeats.first("bad", now)
    assert repeats.rest() == {"bad": 2}
    assert repeats.rest() == {}
