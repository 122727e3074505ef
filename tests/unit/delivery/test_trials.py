"""Tests of the search by halves: it finds exactly the rejected items, in few trials."""

import math

from hypothesis import given
from hypothesis import strategies as st

from meshwright.delivery.trials import Trials, guilty

SUSPECTS = st.integers(1, 200)


@given(SUSPECTS, st.data())
def test_search_finds_exactly_the_guilty_items_in_few_trials(count: int, data: st.DataObject) -> None:
    """At most 2 k ceil(log2 n) + 1 trials find k guilty items of n, whichever items they are."""
    bad = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=8))
    trials = 0

    def refuses(some: frozenset[int]) -> bool:
        nonlocal trials
        trials += 1
        return not bad.isdisjoint(some)

    assert guilty(range(count), refuses) == bad
    assert trials <= 2 * len(bad) * math.ceil(math.log2(count)) + 1


@given(SUSPECTS, st.data())
def test_tried_items_are_never_known_to_be_guilty(count: int, data: st.DataObject) -> None:
    """An item is never tried and excluded together, and an accepted item is never excluded again."""
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


def test_guilty_items_are_retried_one_by_one() -> None:
    """An item that is valid by now is accepted, although others are still refused."""
    trials: Trials[str] = Trials(guilty=frozenset("abc"))
    again = trials.again("ab")
    assert again == Trials((("a",), ("b",)), (), frozenset("c"))
    first = again.next()
    assert first.refused(first.trying) == Trials((("b",),), (), frozenset("ac"))
    assert first.next() == Trials((), ("b",), frozenset("c")), "a was accepted"


def test_removed_items_are_forgotten_in_every_state() -> None:
    """`less` removes items that wait, that are tried, or that are guilty."""
    trials: Trials[str] = Trials((("a", "b"), ("c",)), ("d",), frozenset("ef"))
    assert trials.less("acdf") == Trials((("b",),), (), frozenset("e"))
