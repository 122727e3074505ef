"""What differs between two mappings of layers is found by what they share, and is the same as key by key."""

import random
from operator import is_not, ne

import pytest

from xds.protocol.resources.layers import FLAT, Layers


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_it_is_key_by_key(seed: int, beside: bool) -> None:
    """Along a history of changes, comings and goings, of two tables together as of one."""
    dice = random.Random(seed)  # noqa: S311 - dice
    own = Layers({f"own {number}": object() for number in range(3)})
    now = Layers({f"{number:03}": object() for number in range(2 * FLAT)})
    history = [now]
    for _ in range(3 * FLAT):
        changes: dict[str, object | None] = {f"{dice.randrange(2 * FLAT):03}": object()}
        if dice.random() < 0.02:
            changes = {dice.choice(list(now)): None}
        now = now.changed(changes)
        history.append(now)
    for _ in range(30):
        one, other = (
            Layers(each, own, len(each) + len(own)) if beside else each for each in dice.choices(history, k=2)
        )
        found = {key for key in {*one, *other} if one.get(key) is not other.get(key)}
        assert set(one.differing(other, is_not)) == set(one.differing(other, ne)) == found
