"""The interface of a sidecar driver: name, capabilities, translation of a policy, server.

A driver is a class without constructor arguments, named by an entry point of the group `meshwright.sidecars`.
Translation works in pieces: `pieces` returns pure functions with their arguments (`Piece`), and the engine
calls each distinct piece once, however many proxies need its resources. Therefore the cost of a change is the
number of pieces with changed arguments, and arguments should contain only values that the function uses.

Inputs are in `contexts` and `pod`, the end of a driver in `lifetime`. docs/extend/drivers.md shows how to
write one.
"""

import enum
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from catalog.policy import exclusions as left_out
from catalog.policy import units
from catalog.policy.units import Unit
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.edge import EdgeAuthorities
from catalog.policy.values.parts import Part, WholePolicy
from catalog.policy.values.proxy import ProxyPolicy
from certs.keys.material import ServiceCertificate
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.health import HealthProbes
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.contract.reasons import Reason
from xds.protocol.resources.resource import Reference, Resource, TypeUrl


class Capability(enum.StrEnum):
    """Abilities of a kind of proxy. A policy that needs more than the driver has is reported as a problem."""

    TRANSPARENT_INTERCEPTION = "transparent-interception"
    EXPLICIT_INTERCEPTION = "explicit-interception"
    HTTP_ROUTES = "http-routes"
    TCP_ROUTES = "tcp-routes"
    TRAFFIC_SPLITS = "traffic-splits"
    TCP_SPLITS = "tcp-splits"
    EGRESS = "egress"
    EGRESS_PASSTHROUGH = "egress-passthrough"
    EXTERNAL_DESTINATIONS = "external-destinations"
    CALLERS_FROM_OUTSIDE = "callers-from-outside"
    EXTERNAL_AUTHORIZATION = "external-authorization"
    TRACING = "tracing"
    RETRIES = "retries"
    ROUTE_POLICIES = "route-policies"
    GATEWAY_ROUTES = "gateway-routes"
    GATEWAYS = "gateways"
    LIMITS = "limits"
    UPSTREAM_POLICIES = "upstream-policies"
    ACCESS_LOGS = "access-logs"


def no_faults(resource: Resource) -> tuple[str, ...]:
    """Report no faults of a resource, so that only proxies judge resources."""
    del resource
    return ()


def no_steps(*arguments: object) -> Iterator[None]:
    """Prepare nothing: the default of `Piece.ahead`."""
    del arguments
    return iter(())


@hashed_once
@dataclass(frozen=True, slots=True)
class Piece(CachedHash):
    """A pure function that makes resources, with all its arguments. Equal pieces make equal resources.

    The configuration for a policy is made piece by piece. A piece is made once, even if many policies share
    the piece, and again only after a change. Arguments must be hashable, and should contain only values that
    the function uses.

    - `about` is the part of the policy from which the arguments are taken.
    - `destinations` are further arguments, whose endpoints the function uses. They are filled in when the
      piece is made, restricted to the endpoints that the callers may call; the callers themselves are left
      out.
    - `faults` returns the reasons for which proxies would refuse a resource, as far as known in advance.
    - `ahead` is a generator with the same arguments for a piece with a long computation: the generator makes
      parts in advance and caches them for `make`.
    """

    make: Callable[..., "Resource | tuple[Resource, ...]"]
    arguments: tuple[Any, ...] = ()
    about: Part = field(default=WholePolicy(), compare=False)
    destinations: tuple[ServiceDestination, ...] = ()
    faults: Callable[[Resource], tuple[str, ...]] = field(default=no_faults, compare=False)
    ahead: Callable[..., Iterator[None]] = field(default=no_steps, compare=False)

    def resources(self) -> tuple[Resource, ...]:
        """Make the resources.

        A resource that could be made with less policy gets this piece as `recipe`.
        """
        made = self.make(*self.arguments, *self.destinations)
        result = made if isinstance(made, tuple) else (made,)
        if not self.admits and next(self._units(), None) is None:
            return result
        return tuple(replace(resource, recipe=self) for resource in result)

    @property
    def admits(self) -> bool:
        """Return whether the resources decide which callers are admitted to the workload."""
        return any(map(left_out.admits, self.arguments))

    @property
    def units(self) -> frozenset[Unit]:
        """Return the units of policy from which the resources are made."""
        return frozenset(self._units())

    def without(self, out: AbstractSet[Unit]) -> "Piece":
        """Return the piece with these units of policy left out."""
        return replace(self, arguments=tuple(left_out.without(argument, out) for argument in self.arguments))

    def narrowed(self, to: "Piece | None") -> "Piece":
        """Return the piece restricted to callers that `to`, a newer form of the piece, admits too."""
        others = self.arguments if to is None else to.arguments
        pairs = zip(self.arguments, others, strict=True)
        now = (left_out.narrowed(mine, None if to is None else its) for mine, its in pairs)
        return replace(self, arguments=tuple(now))

    def _units(self) -> Iterator[Unit]:
        return (unit for argument in self.arguments for unit in units.units(argument))


@hashed_once
@dataclass(frozen=True, slots=True)
class Pieces(CachedHash):
    """A pure function that makes pieces, with all its arguments: the common part of many policies.

    Equal ones are made once, with their resources, for all groups of proxies. A group therefore pays as
    little for a thousand common pieces as for one. Pieces may contain further Pieces for parts of their
    arguments, so that a change in one part does not make the others again. Arguments must be hashable,
    quickly if they are large (`meshwright.mesh.values.cached_hash`).
    """

    make: "Callable[..., Iterable[Piece | Pieces]]"
    arguments: tuple[Any, ...] = ()

    def pieces(self) -> "tuple[Piece | Pieces, ...]":
        """Call `make` with the arguments, and return the pieces."""
        return tuple(self.make(*self.arguments))


def each_piece(result: "Iterable[Piece | Pieces]") -> Iterator[Piece]:
    """Yield every piece of a driver's result, including those inside of Pieces."""
    for item in result:
        if isinstance(item, Pieces):
            yield from each_piece(item.pieces())
        else:
            yield item


@dataclass(frozen=True, slots=True)
class Credentials:
    """The service certificate and the trust bundle (PEM) of the proxies in a group.

    `secrets` are the certificates that a gateway shows to its clients; the chains of `ProxyPolicy.edge` name
    them. `authorities` are the CA certificates by which the ports of a gateway validate clients.
    """

    certificate: ServiceCertificate
    trust_domain: TrustDomain
    trust_bundle: bytes = field(repr=False)
    secrets: tuple[TlsSecret, ...] = ()
    authorities: tuple[EdgeAuthorities, ...] = ()


@runtime_checkable
class SidecarDriver(Protocol):
    """A kind of proxy, as far as the mesh must know it.

    `capabilities` never change. `proxy_server_port` is the default port of the driver's control plane. A
    driver translates a policy, delivers the snapshots of the shared catalog to proxies, and declares
    capabilities. The policy, the choice of proxies, and their admission are decided elsewhere.
    """

    @property
    def name(self) -> str:
        """Return the name by which `sidecarClass` in MeshConfig selects the driver."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities of this kind of proxy."""
        ...

    @property
    def proxy_server_port(self) -> int:
        """Return the port on which proxies expect their control plane."""
        ...

    @property
    def types(self) -> frozenset[TypeUrl]:
        """Return the types of all resources of the driver, which identify the snapshots of its proxies."""
        ...

    @property
    def ready_type(self) -> TypeUrl:
        """Return the type of which a proxy must have accepted a response before it can be called."""
        ...

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece | Pieces, ...]:
        """Return the configuration for a policy, in pieces: pure, without secrets.

        The policy may have no endpoints; a piece receives the endpoints of its `destinations` only.
        """
        ...

    def credentials(self, credentials: Credentials) -> tuple[Piece, ...]:
        """Return the pieces for keys and trust bundles; their resources are marked `secret`."""
        ...

    def empty(self, reference: Reference) -> Resource | None:
        """Return a substitute for a rejected resource without an earlier accepted version.

        The substitute has the same name and type (one of `types`), is without references, and blocks all
        traffic. None means that the resource is left out, and resources with a reference to it return to an
        earlier version.
        """
        ...

    def reason(self, said: str) -> Reason:
        """Return the kind of reason for which a proxy rejected a resource, from the proxy's message.

        The result is CONTENT if the message is unclear.
        """
        ...

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Start the control plane; return its health probes as soon as it listens.

        Raises CannotStartError, or ListenError for the address. All later work must run in tasks of
        `context.lifetime`, which also announces the end and its deadline. Called at most once.
        """
        ...

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod with its sidecar: pure and deterministic; the context's pod is not modified.

        Applied to its own output the function returns an equal pod. Raises CannotPatchError for a pod that
        cannot have a sidecar.
        """
        ...
