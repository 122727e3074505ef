"""The contract of a sidecar driver: its name, what it can do, what is sent for a policy, and by whom.

A driver is a class that an entry point of the group `meshwright.sidecars` names; it is made without
arguments. What it is given is in `contexts` and `pod`, how it ends in `lifetime`; docs/drivers.md shows how
to write one.
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
from catalog.policy.values.parts import Part, WholePolicy
from catalog.policy.values.proxy import ProxyPolicy
from certs.keys.material import ServiceCertificate
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.health import HealthProbes
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.contract.reasons import Reason
from xds.protocol.resources.resource import Reference, Resource, TypeUrl


class Capability(enum.StrEnum):
    """What a kind of proxy can do. Policy that needs more than its driver has is to be reported."""

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
    LIMITS = "limits"
    UPSTREAM_POLICIES = "upstream-policies"
    ACCESS_LOGS = "access-logs"


def no_faults(resource: Resource) -> tuple[str, ...]:
    """Leave it to the proxies to judge a resource."""
    del resource
    return ()


def no_steps(*arguments: object) -> Iterator[None]:
    """Make nothing beforehand."""
    del arguments
    return iter(())


@hashed_once
@dataclass(frozen=True, slots=True)
class Piece(CachedHash):
    """A pure function that makes resources, and all that it makes them from; equal pieces make equal ones.

    What is sent for a policy is made piece by piece, so that a piece which many policies have in common, or
    a policy had before, is made once. Arguments are hashable; what the function does not look at should not
    be in them. `about` is the part of the policy that they are taken from. `destinations` are further
    arguments, those whose endpoints the function looks at: they are filled in when it is made, as their
    callers may call them, and who that is is left out. `faults` says why proxies would refuse a resource
    that it made, as far as that is known before they are asked. What takes long to make may have an `ahead`,
    a generator of the same arguments that makes parts of it beforehand and remembers them for `make`.
    """

    make: Callable[..., "Resource | tuple[Resource, ...]"]
    arguments: tuple[Any, ...] = ()
    about: Part = field(default=WholePolicy(), compare=False)
    destinations: tuple[ServiceDestination, ...] = ()
    faults: Callable[[Resource], tuple[str, ...]] = field(default=no_faults, compare=False)
    ahead: Callable[..., Iterator[None]] = field(default=no_steps, compare=False)

    def resources(self) -> tuple[Resource, ...]:
        """Make the resources; those that may be made with less of the policy know their piece as `recipe`."""
        made = self.make(*self.arguments, *self.destinations)
        found = made if isinstance(made, tuple) else (made,)
        if not self.admits and next(self._units(), None) is None:
            return found
        return tuple(replace(each, recipe=self) for each in found)

    @property
    def admits(self) -> bool:
        """Say whether its resources decide who is admitted."""
        return any(map(left_out.admits, self.arguments))

    @property
    def units(self) -> frozenset[Unit]:
        """Return the units of policy that its resources are made from."""
        return frozenset(self._units())

    def without(self, out: AbstractSet[Unit]) -> "Piece":
        """Return the piece that makes the same without these units of policy."""
        return replace(self, arguments=tuple(left_out.without(each, out) for each in self.arguments))

    def narrowed(self, to: "Piece | None") -> "Piece":
        """Return the piece that makes the same, but admits only what `to`, a newer form of it, admits too."""
        others = self.arguments if to is None else to.arguments
        pairs = zip(self.arguments, others, strict=True)
        now = (left_out.narrowed(mine, None if to is None else its) for mine, its in pairs)
        return replace(self, arguments=tuple(now))

    def _units(self) -> Iterator[Unit]:
        return (unit for each in self.arguments for unit in units.units(each))


@hashed_once
@dataclass(frozen=True, slots=True)
class Pieces(CachedHash):
    """A pure function that makes pieces, and all that it makes them from: what many policies have in common.

    Equal ones are made once, with their resources, for all groups of proxies that have them: such a group
    pays as little for a thousand pieces as for one. What is made of parts of them alone may be pieces among
    them, so that it is not made again with the whole. Arguments are hashable, at once if they are large
    (`meshwright.mesh.values.cached_hash`).
    """

    make: "Callable[..., Iterable[Piece | Pieces]]"
    arguments: tuple[Any, ...] = ()

    def pieces(self) -> "tuple[Piece | Pieces, ...]":
        """Make the pieces."""
        return tuple(self.make(*self.arguments))


def each_piece(found: "Iterable[Piece | Pieces]") -> Iterator[Piece]:
    """Yield every piece, those among them that are made together."""
    for each in found:
        if isinstance(each, Pieces):
            yield from each_piece(each.pieces())
        else:
            yield each


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the proxies of a group prove themselves with, and whom they trust (`trust_bundle` is PEM)."""

    certificate: ServiceCertificate
    trust_domain: TrustDomain
    trust_bundle: bytes = field(repr=False)


@runtime_checkable
class SidecarDriver(Protocol):
    """A kind of proxy, as far as the mesh must know it.

    `capabilities` are fixed; `proxy_server_port` is where the driver's control plane listens by default.
    What is made of a policy, who it is for, and who may have it is decided elsewhere: a driver translates,
    carries to its proxies what the shared catalog holds of it, and says what it can do.
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

    @property
    def types(self) -> frozenset[TypeUrl]:
        """Return the types of all its resources; by them the snapshots of its proxies are known."""
        ...

    @property
    def ready_type(self) -> TypeUrl:
        """Return the type of which a proxy has accepted a response when it can be called."""
        ...

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece | Pieces, ...]:
        """Return what proxies of this kind are sent for a policy, in pieces: pure, without secrets.

        The policy may come without endpoints: a piece gets those of its `destinations`, and no others.
        """
        ...

    def credentials(self, credentials: Credentials) -> tuple[Piece, ...]:
        """Return the pieces that hold a key or whom to trust; their resources are marked `secret`."""
        ...

    def empty(self, reference: Reference) -> Resource | None:
        """Return what stands in the place of a resource that a proxy rejects and that has never been good.

        It has that type, one of `types`, and that name; it refers to nothing and lets nothing pass. None
        where there is no such thing: the resource is left out, and what refers to it goes a version back.
        """
        ...

    def reason(self, said: str) -> Reason:
        """Return why a proxy of this kind rejects something, by its words: CONTENT where it is unsure."""
        ...

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Start the control plane of this driver's proxies; return, once it listens, how to ask for health.

        Raises CannotStartError, or ListenError for the address. What goes on afterwards are tasks of
        `context.lifetime`, which also says when they must end, and how soon. Started at most once.
        """
        ...

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod with its sidecar: pure, deterministic, the context's pod untouched.

        On its own output it gives the same. Raises CannotPatchError for a pod that cannot have one.
        """
        ...
