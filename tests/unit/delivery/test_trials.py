"""The search by halves: it finds exactly what is refused, in few trials, and lets nothing wait for ever."""

import math

from hypothesis import given
from hypothesis import strategies as st

from meshwright.delivery.trials import Trials, guilty

SUSPECTS = st.integers(1, 200)


@given(SUSPECTS, st.data())
def test_exactly_the_guilty_ones_are_found_in_few_trials(count: int, data: st.DataObject) -> None:
    """Whichever they are."""
    bad = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=8))
    trials = 0

    def refuses(some: frozenset[int]) -> bool:
        nonlocal trials
        trials += 1
        return not bad.isdisjoint(some)

    assert guilty(range(count), refuses) == bad
    assert trials <= 2 * len(bad) * math.ceil(math.log2(count)) + 1


@given(SUSPECTS, st.data())
def test_what_is_let_in_is_never_what_is_known_to_be_guilty(count: int, data: st.DataObject) -> None:
    """And nothing is at two places at once."""
    bad = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    nothing: Trials[int] = Trials()
    trials = nothing.refused(range(count))
    innocent: set[int] = set()
    while trials.waiting:
        trials = trials.next()
        assert not trials.guilty & {*trials.trying}
        assert not trials.out & {*trials.trying}
        assert trials.guilty <= bad
        if bad.isdisjoint(trials.trying):
            innocent |= {*trials.trying}
        else:
            trials = trials.refused(trials.trying)
        assert innocent.isdisjoint(trials.out)
    assert trials.guilty == bad
    assert innocent == {*range(count)} - bad


def test_guilty_ones_are_tried_again_one_by_one() -> None:
    """So that one that is good by now comes back, though others are not."""
    trials: Trials[str] = Trials(guilty=frozenset("abc"))
    again = trials.again("ab")
    assert again == Trials((("a",), ("b",)), (), frozenset("c"))
    first = again.next()
    assert first.refused(first.trying) == Trials((("b",),), (), frozenset("ac"))
    assert first.next() == Trials((), ("b",), frozenset("c")), "a was accepted"


def test_what_is_gone_is_forgotten_wherever_it_is() -> None:
    """It waits, is tried, or is guilty."""
    trials: Trials[str] = Trials((("a", "b"), ("c",)), ("d",), frozenset("ef"))
    assert trials.less("acdf") == Trials((("b",),), (), frozenset("e"))
