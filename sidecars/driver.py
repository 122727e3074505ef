"""The contract of a sidecar driver: its name, what it can do, and what is sent for a policy.

A driver is a class that an entry point of the group `meshwright.sidecars` names; it is made without
arguments. It grows with what the mesh has: `start` (the driver's control plane and its health probes) and
`patch` (a pod gets its sidecar) join it when something calls them.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from catalog.proxy import ProxyPolicy
from xds.resource import Resource


class Capability(enum.StrEnum):
    """What a kind of proxy can do. Policy that needs more than its driver has is to be reported."""

    TRANSPARENT_INTERCEPTION = "transparent-interception"
    EXPLICIT_INTERCEPTION = "explicit-interception"
    HTTP_ROUTES = "http-routes"
    TCP_ROUTES = "tcp-routes"
    TRAFFIC_SPLITS = "traffic-splits"
    EGRESS_PASSTHROUGH = "egress-passthrough"


@dataclass(frozen=True, slots=True)
class Piece:
    """A pure function that makes resources, and all that it makes them from; equal pieces make equal ones.

    What is sent for a policy is made piece by piece, so that a piece which many policies have in common, or
    a policy had before, is made once. Arguments are hashable; what the function does not look at should not
    be in them.
    """

    make: Callable[..., "Resource | tuple[Resource, ...]"]
    arguments: tuple[Any, ...] = ()

    def resources(self) -> tuple[Resource, ...]:
        """Make the resources."""
        made = self.make(*self.arguments)
        return made if isinstance(made, tuple) else (made,)


@runtime_checkable
class SidecarDriver(Protocol):
    """A kind of proxy, as far as the mesh must know it.

    `capabilities` are fixed; `proxy_server_port` is where the driver's control plane listens by default.
    """

    @property
    def name(self) -> str:
        """Return the name by which MeshConfig's `sidecarClass` chooses the driver."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return what this kind of proxy can do."""
        ...

    @property
    def proxy_server_port(self) -> int:
        """Return the port on which its proxies expect their control plane."""
        ...

    def translate(self, policy: ProxyPolicy) -> tuple[Resource, ...]:
        """Return what proxies of this kind are sent for a policy: pure, sorted, without secrets."""
        ...

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece, ...]:
        """Return the same in pieces; their resources taken together are those of `translate`."""
        ...
