"""Tests of sets of networks, compared with a check of each single network."""

import random
from ipaddress import IPv4Network, IPv6Network

import pytest

from meshwright.mesh.values.networks import Network, NetworkSet


def _network(dice: random.Random) -> Network:
    """Return one of few networks, so that many contain each other."""
    bits, number = dice.randrange(5), dice.randrange(16)
    if dice.random() < 0.3:
        return IPv6Network((number >> (4 - bits) << (4 - bits), 124 + bits))
    return IPv4Network((number >> (4 - bits) << (4 - bits), 28 + bits))


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


@pytest.mark.parametrize("seed", range(40))
def test_network_set_agrees_with_checks_of_each_network(seed: int) -> None:
    """The set answers whether it contains a network, and whether two sets overlap."""
    dice = random.Random(seed)  # noqa: S311 - random networks
    ours, theirs = ([_network(dice) for _ in range(dice.randrange(6))] for _ in range(2))
    network_set = NetworkSet(ours)
    for _ in range(20):
        item = _network(dice)
        assert network_set.holds(item) is any(_within(item, one) for one in ours)
    meet = any(one.version == element.version and one.overlaps(element) for one in ours for element in theirs)
    assert network_set.meets(NetworkSet(theirs)) is meet is NetworkSet(theirs).meets(network_set)
