"""The services of a simulated mesh, and the snapshots of their proxies, made once for all servers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from benchmarks.synthetic.resources import around, service
from protos.envoy.config.endpoint.v3 import endpoint_components_pb2, endpoint_pb2
from xds.protocol.resources.resource import Resource, encode
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.snapshot import Snapshot

STEPS: Final = (1, 7, 31, 43, 68)
"""Distances by number between a service and the services that it calls."""

KEPT: Final = 4
"""Number of snapshots of a group, and of endpoints of a service, that servers which are behind find kept."""

Pods = frozenset[int]
"""Numbers of the Pods of a service that get calls."""


@dataclass
class SimulatedMesh:
    """Services, each of which calls some others; resources and snapshots are lent to all servers."""

    services: int
    _endpoints: dict[int, dict[Pods, Resource]] = field(default_factory=dict)
    _snapshots: dict[int, dict[tuple[Pods, ...], Snapshot]] = field(default_factory=dict)
    _parts: dict[int, ResourceSet] = field(default_factory=dict)
    made: int = 0

    def called(self, number: int) -> tuple[int, ...]:
        """Return the services that a service calls."""
        return tuple(sorted({(number + step) % self.services for step in STEPS} - {number}))

    def callers(self, number: int) -> tuple[int, ...]:
        """Return the services that call a service."""
        return tuple(sorted({(number - step) % self.services for step in STEPS} - {number}))

    def snapshot(self, number: int, pods: tuple[Pods, ...]) -> Snapshot:
        """Return the snapshot of a service's proxies; `pods` has the ready Pods of each called service."""
        kept = self._snapshots.setdefault(number, {})
        if (known := kept.get(pods)) is not None:
            return known
        self.made += 1
        before = next(reversed(kept.values()), None)
        called = zip(self.called(number), pods, strict=True)
        endpoints = [self._endpoints_of(other, its) for other, its in called]
        made = (
            Snapshot((self._part(number), ResourceSet.of(endpoints)))
            if before is None
            else before.changed(endpoints)
        )
        kept[pods] = made
        if len(kept) > KEPT:
            del kept[next(iter(kept))]
        return made

    def _part(self, number: int) -> ResourceSet:
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = ResourceSet.of(around(self.called(number)))
        return part

    def _endpoints_of(self, number: int, pods: Pods) -> Resource:
        kept = self._endpoints.setdefault(number, {})
        if pods not in kept:
            kept[pods] = _assignment(number, pods)
            if len(kept) > KEPT:
                del kept[next(iter(kept))]
        return kept[pods]


def _assignment(number: int, pods: Iterable[int]) -> Resource:
    locality = endpoint_components_pb2.LocalityLbEndpoints()
    for pod in sorted(pods):
        socket = locality.lb_endpoints.add().endpoint.address.socket_address
        socket.address = f"10.{pod >> 16 & 255}.{pod >> 8 & 255}.{pod & 255}"
        socket.port_value = 8080
    return encode(endpoint_pb2.ClusterLoadAssignment(cluster_name=service(number), endpoints=[locality]))
