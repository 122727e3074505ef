"""Sets of networks with fast tests whether a network is in one of them, or overlaps one."""

from bisect import bisect_right
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network

Network = IPv4Network | IPv6Network


class NetworkSet:
    """A set of networks of both families.

    Two networks of one family are disjoint, or one contains the other. The networks that no other contains
    are therefore disjoint and sorted, and the one that may contain an address is found by bisection.
    """

    __slots__ = ("_first", "_last")

    def __init__(self, networks: Iterable[Network]) -> None:
        self._first: dict[int, list[int]] = {4: [], 6: []}
        self._last: dict[int, list[int]] = {4: [], 6: []}
        for version, first, last in sorted(map(_bounds, set(networks)), key=_widest_first):
            # Widest first at each begin, so a network inside an earlier one ends before it, and is dropped.
            if not self._last[version] or first > self._last[version][-1]:
                self._first[version].append(first)
                self._last[version].append(last)

    def holds(self, network: Network) -> bool:
        """Return whether one network of the set contains the whole of another network."""
        version, first, last = _bounds(network)
        place = bisect_right(self._first[version], first)
        return place > 0 and last <= self._last[version][place - 1]

    def meets(self, other: "NetworkSet") -> bool:
        """Return whether this and another set have an address in common."""
        return any(_meet(self.ranges(version), other.ranges(version)) for version in (4, 6))

    def ranges(self, version: int) -> list[tuple[int, int]]:
        """Return the set's ranges of one IP version as first and last address, sorted and disjoint."""
        return list(zip(self._first[version], self._last[version], strict=True))


def _meet(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> bool:
    """Return whether two sorted lists of disjoint ranges have an address in common."""
    at = 0
    for first, last in ours:
        while at < len(theirs) and theirs[at][1] < first:
            at += 1
        if at < len(theirs) and theirs[at][0] <= last:
            return True
    return False


def _bounds(network: Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), int(network.broadcast_address)


def _widest_first(bounds: tuple[int, int, int]) -> tuple[int, int, int]:
    version, first, last = bounds
    return version, first, -last
