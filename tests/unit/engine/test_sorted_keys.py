"""Tests of sorted keys: additions, removals, and the cost of additions in order."""

from hypothesis import given
from hypothesis import strategies as st

from meshwright.engine.sorted_keys import COPIED, SortedKeys, with_key, without_key


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3 * COPIED)), max_size=8 * COPIED))
def test_keys_stay_sorted_after_any_additions_and_removals(steps: list[tuple[bool, int]]) -> None:
    """The representation, a tuple or a SortedKeys, makes no difference."""
    keys: tuple[int, ...] | SortedKeys[int] = ()
    there: set[int] = set()
    for is_in, key in steps:
        keys = with_key(keys, key) if is_in else without_key(keys, key)
        (there.add if is_in else there.discard)(key)
    assert (keys.all() if isinstance(keys, SortedKeys) else keys) == tuple(sorted(there))


def test_shrunk_keys_become_a_tuple_at_half_the_limit() -> None:
    """A small entry uses little memory, and the gap to the limit prevents a conversion at each key."""
    keys: tuple[int, ...] | SortedKeys[int] = ()
    sorts = []
    for key in range(2 * COPIED):
        keys = with_key(keys, key)
    for key in range(2 * COPIED):
        keys = without_key(keys, key)
        sorts.append(isinstance(keys, tuple))
    assert keys == ()
    assert sorts == [False] * (COPIED + COPIED // 2 - 1) + [True] * (COPIED // 2 + 1)


class _Counted(int):
    """A key that counts how often one of its kind is compared."""

    times = 0

    def __lt__(self, other: int) -> bool:
        _Counted.times += 1
        return int(self) < int(other)


def test_key_added_in_order_is_compared_once() -> None:
    """Nearly all keys are added in order when a mesh is read for the first time."""
    keys = with_key((), _Counted(0))
    _Counted.times = 0
    for key in range(1, COPIED):
        keys = with_key(keys, _Counted(key))
    assert _Counted.times == COPIED - 1
