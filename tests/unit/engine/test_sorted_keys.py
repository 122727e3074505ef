"""Keys in order: wherever one is put in, and for little at the end."""

from hypothesis import given
from hypothesis import strategies as st

from meshwright.engine.sorted_keys import COPIED, SortedKeys, with_key, without_key


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3 * COPIED)), max_size=8 * COPIED))
def test_keys_are_those_put_in_and_not_taken_out_sorted(steps: list[tuple[bool, int]]) -> None:
    """In whatever order they come and go, as a tuple and as what can be added to."""
    keys: tuple[int, ...] | SortedKeys[int] = ()
    there: set[int] = set()
    for is_in, key in steps:
        keys = with_key(keys, key) if is_in else without_key(keys, key)
        (there.add if is_in else there.discard)(key)
    assert (keys.all() if isinstance(keys, SortedKeys) else keys) == tuple(sorted(there))


def test_few_keys_are_a_tuple_again() -> None:
    """An entry that was large once holds no more than another; it does not change at each key."""
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


def test_keys_that_come_in_order_are_compared_once() -> None:
    """As nearly all do when a mesh is read for the first time."""
    keys = with_key((), _Counted(0))
    _Counted.times = 0
    for key in range(1, COPIED):
        keys = with_key(keys, _Counted(key))
    assert _Counted.times == COPIED - 1
