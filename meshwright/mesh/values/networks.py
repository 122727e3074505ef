"""Sets of networks: whether a network lies in one of many, or meets one, without a look at each of them."""

from bisect import bisect_right
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network

Network = IPv4Network | IPv6Network


class NetworkSet:
    """Some networks of either family.

    Two networks of one family are either apart, or one lies in the other. So those that lie in no other are
    in order and apart, and the one that may hold an address is found by bisection.
    """

    __slots__ = ("_first", "_last")

    def __init__(self, networks: Iterable[Network]) -> None:
        self._first: dict[int, list[int]] = {4: [], 6: []}
        self._last: dict[int, list[int]] = {4: [], 6: []}
        for version, first, last in sorted(map(_bounds, set(networks)), key=_widest_first):
            if not self._last[version] or first > self._last[version][-1]:
                self._first[version].append(first)
                self._last[version].append(last)

    def holds(self, network: Network) -> bool:
        """Say whether all of a network lies in one of these."""
        version, first, last = _bounds(network)
        place = bisect_right(self._first[version], first)
        return place > 0 and last <= self._last[version][place - 1]

    def meets(self, other: "NetworkSet") -> bool:
        """Say whether some address is in both sets."""
        return any(_meet(self.ranges(version), other.ranges(version)) for version in (4, 6))

    def ranges(self, version: int) -> list[tuple[int, int]]:
        """Return the ranges of one IP version as first and last address, in order and apart."""
        return list(zip(self._first[version], self._last[version], strict=True))


def _meet(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> bool:
    """Say whether two lists of ranges, each in order and apart, have an address in common."""
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
