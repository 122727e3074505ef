"""How long is waited."""

import pytest

from meshwright.kube.reflector.pacing import Pacing


def test_pauses() -> None:
    """They double up to the longest, by chance down to half of that; without failures there is none."""
    pacing = Pacing(first=1, longest=8)
    assert [pacing.pause(times, 1) for times in range(7)] == [0, 1, 2, 4, 8, 8, 8]
    assert [pacing.pause(times, 0) for times in range(4)] == [0, 0.5, 1, 2]
    assert pacing.pause(10_000, 1) == 8


@pytest.mark.parametrize(("asked", "pause"), [(5.0, 5.0), (0.1, 1.0), (100_000.0, 80.0)])
def test_retry_after(asked: float, pause: float) -> None:
    """What the server asks for counts where it is longer than ours, and never for long."""
    assert Pacing(first=1, longest=8).pause(1, 1, asked) == pause


def test_spread() -> None:
    """Watches and lists of many reflectors do not end, or become old, in one moment."""
    assert (Pacing().watch_for(0), Pacing().watch_for(1)) == (290, 348)
    assert Pacing(watch=0.1).watch_for(0) == 1
    assert Pacing(relist=100).relist_after(0.5) == pytest.approx(110)
