"""Test of the differences between layered mappings, which are found through the layers they share."""

import random
from operator import is_not, ne

import pytest

from xds.protocol.resources.layers import FLAT, Layers


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_difference_of_layers_equals_a_comparison_key_by_key(seed: int, beside: bool) -> None:
    """Pairs from a history of changes and removals are compared, for one table and for two joined ones."""
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
            Layers(choice, own, len(choice) + len(own)) if beside else choice
            for choice in dice.choices(history, k=2)
        )
        result = {key for key in {*one, *other} if one.get(key) is not other.get(key)}
        assert set(one.differing(other, is_not)) == set(one.differing(other, ne)) == result
