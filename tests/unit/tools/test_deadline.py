"""Tests of deadlines in waiting tests: extended on a slow machine, and always finite."""

import pytest

from tests.tools.deadline import (
    LONGEST_PAUSE,
    MOST_SLOWNESS,
    SHORTEST_PAUSE,
    Deadline,
    slowness,
    until,
    wait_until,
)


def test_deadline_is_extended_by_the_measured_slowness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds become thirty on a machine that is three times slower; slowness is measured once."""
    now, measured = [0.0], list[float]()

    def measure() -> float:
        measured.append(now[0])
        return 3.0

    monkeypatch.setattr("tests.tools.deadline.time.monotonic", lambda: now[0])
    deadline = Deadline(10.0, measure)
    passed = {}
    for now[0] in (0.0, 9.9, 10.0, 29.9, 30.0, 31.0):
        passed[now[0]] = deadline.has_passed()
    assert passed == {0.0: False, 9.9: False, 10.0: False, 29.9: False, 30.0: True, 31.0: True}
    assert measured == [10.0]


def test_pauses_grow_with_the_wait_between_two_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a short wait is noticed at once, and a long wait needs few checks."""
    now = [0.0]
    monkeypatch.setattr("tests.tools.deadline.time.monotonic", lambda: now[0])
    deadline = Deadline(10.0)
    pauses = []
    for now[0] in (0.0, 0.02, 0.5, 1.0, 9.0):
        pauses.append(round(deadline.pause(), 6))
    assert pauses == [SHORTEST_PAUSE, SHORTEST_PAUSE, 0.1, 0.2, LONGEST_PAUSE]


def test_slowness_is_bounded() -> None:
    """A fast or hanging machine must not give an absurd factor."""
    assert 1.0 <= slowness() <= MOST_SLOWNESS


def test_condition_that_never_holds_fails_with_its_last_state() -> None:
    """The error message contains the state."""
    with pytest.raises(AssertionError, match=r"not within \d+ s: the state"):
        wait_until(lambda: False, 0.0, lambda: "the state")


async def test_coroutine_or_function_is_awaited_until_it_holds() -> None:
    """A condition that never holds fails at the deadline."""
    answers = [False, False, True]

    async def holds() -> bool:
        return answers.pop(0)

    await until(holds, 5.0)
    assert answers == []
    await until(lambda: True, 0.0)
    with pytest.raises(AssertionError, match="not within"):
        await until(lambda: False, 0.0)
