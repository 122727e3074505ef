"""Tests of the pauses and periods of a reflector."""

import pytest

from meshwright.kube.reflector.pacing import Pacing


def test_pauses_double_up_to_the_longest_with_jitter() -> None:
    """Jitter shortens a pause to at least half. Without a failure there is no pause."""
    pacing = Pacing(first=1, longest=8)
    assert [pacing.pause(times, 1) for times in range(7)] == [0, 1, 2, 4, 8, 8, 8]
    assert [pacing.pause(times, 0) for times in range(4)] == [0, 0.5, 1, 2]
    assert pacing.pause(10_000, 1) == 8


@pytest.mark.parametrize(("asked", "pause"), [(5.0, 5.0), (0.1, 1.0), (100_000.0, 80.0)])
def test_retry_after_lengthens_a_pause_within_a_limit(asked: float, pause: float) -> None:
    """A shorter request of the server has no effect, and a very long one is cut."""
    assert Pacing(first=1, longest=8).pause(1, 1, asked) == pause


def test_watches_and_relists_of_reflectors_are_spread() -> None:
    """Many reflectors must not end their watches, or list again, at the same moment."""
    assert (Pacing().watch_for(0), Pacing().watch_for(1)) == (290, 348)
    assert Pacing(watch=0.1).watch_for(0) == 1
    assert Pacing(relist=100).relist_after(0.5) == pytest.approx(110)
