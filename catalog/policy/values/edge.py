"""Listeners of a gateway at its proxies: ports, with route tables by host name."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.route_actions import Forward, WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@hashed_once
@dataclass(frozen=True, slots=True)
class EdgeHost(CachedHash):
    """Requests for a host name: the first entry of `table` that fits decides; without one the answer is 404.

    `hostname` is exact, a suffix such as `*.shop.example`, or empty for all other names.
    """

    hostname: str
    table: tuple[RouteEntry, ...]


@hashed_once
@dataclass(frozen=True, slots=True)
class EdgePort(CachedHash):
    """A port with HTTP of a gateway; `listen` are the proxy's own addresses.

    `hosts` are sorted by host name; the most specific one that covers the name of a request decides.
    """

    gateway: PolicyKey
    port: Port
    hosts: tuple[EdgeHost, ...]
    listen: tuple[SocketAddress, ...] = ()

    @property
    def fails_over(self) -> bool:
        """True if any entry repeats failed requests farther away."""
        return any(isinstance(action, Forward) and action.fails_over for action in self._actions())

    @property
    def cross_origin(self) -> bool:
        """True if any entry allows cross-origin requests of browsers."""
        return any(
            entry.treatment is not None and entry.treatment.cors is not None
            for host in self.hosts
            for entry in host.table
        )

    def backends(self) -> Iterator[WeightedBackend]:
        """Yield the backends of all entries, possibly repeated; those of mirrors are included."""
        for action in {id(action): action for action in self._actions()}.values():
            if isinstance(action, Forward):
                yield from action.backends()

    def _actions(self) -> Iterator[object]:
        return (entry.action for host in self.hosts for entry in host.table)
