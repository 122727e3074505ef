"""Sets of networks, held against a look at each of their networks."""

import random
from ipaddress import IPv4Network, IPv6Network

import pytest

from meshwright.mesh.values.networks import Network, NetworkSet


def _network(dice: random.Random) -> Network:
    """Return a network among few, so that many are in each other."""
    bits, number = dice.randrange(5), dice.randrange(16)
    if dice.random() < 0.3:
        return IPv6Network((number >> (4 - bits) << (4 - bits), 124 + bits))
    return IPv4Network((number >> (4 - bits) << (4 - bits), 28 + bits))


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


@pytest.mark.parametrize("seed", range(40))
def test_a_set_says_what_a_look_at_each_network_would(seed: int) -> None:
    """Whether one of them holds a network, and whether two sets have an address in common."""
    dice = random.Random(seed)  # noqa: S311 - random networks
    ours, theirs = ([_network(dice) for _ in range(dice.randrange(6))] for _ in range(2))
    found = NetworkSet(ours)
    for _ in range(20):
        each = _network(dice)
        assert found.holds(each) is any(_within(each, one) for one in ours)
    meet = any(one.version == each.version and one.overlaps(each) for one in ours for each in theirs)
    assert found.meets(NetworkSet(theirs)) is meet is NetworkSet(theirs).meets(found)
