"""Repeated events: the first of a kind at once, others as one count per period."""

from meshwright.serving.repeats import MOST_KINDS, OTHER, Repeats


def test_the_first_of_a_kind_is_written_at_once_and_others_are_counted() -> None:
    """A flood of one kind gives one line now and one per period."""
    repeats = Repeats(60.0)
    assert [repeats.first("bad", now) for now in (0.0, 1.0, 2.0, 59.0)] == [True, False, False, False]
    assert repeats.due(59.9) == {}
    assert repeats.due(60.0) == {"bad": 3}
    assert not repeats.first("bad", 61.0)
    assert repeats.due(120.0) == {"bad": 1}


def test_a_kind_that_stopped_is_forgotten() -> None:
    """After a period without events, the next event is a first one again."""
    repeats = Repeats(60.0)
    assert repeats.first("bad", 0.0)
    assert repeats.due(60.0) == {}
    assert repeats.next_due() is None
    assert repeats.first("bad", 61.0)


def test_invented_kinds_share_one_count() -> None:
    """A client that invents kinds gets no line for each of them."""
    repeats = Repeats(60.0)
    lines = sum(repeats.first(f"kind {number}", 0.0) for number in range(1000))
    assert lines == MOST_KINDS + 1
    assert repeats.due(60.0) == {OTHER: 1000 - MOST_KINDS - 1}


def test_what_was_not_written_is_written_at_the_end() -> None:
    """No count is lost when the server ends."""
    repeats = Repeats(60.0)
    for now in (0.0, 1.0, 2.0):
        repeats.first("bad", now)
    assert repeats.rest() == {"bad": 2}
    assert repeats.rest() == {}
