"""Objects of a source, their keys, and their origins."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.backend_tls import BackendTLSPolicy
from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.gateway.gateways import Gateway, GatewayClass, ListenerSet
from meshwright.mesh.gateway.routes import GRPCRoute, HTTPRoute, ReferenceGrant, TLSRoute
from meshwright.mesh.gateway.routes import TCPRoute as GatewayTCPRoute
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import FORMS, NAMESPACE, READ_AS, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.origins import Origin
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.client_traffic import ClientTrafficPolicy
from meshwright.mesh.policies.egress import Egress
from meshwright.mesh.policies.ingress import IngressBackend
from meshwright.mesh.policies.limits import UpstreamTrafficSetting
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.policies.retries import Retry
from meshwright.mesh.policies.roots import MeshRootCertificate
from meshwright.mesh.policies.routing import RoutePolicy
from meshwright.mesh.policies.smi import HTTPRouteGroup, TCPRoute, TrafficSplit, TrafficTarget
from meshwright.mesh.policies.telemetry import ExtensionService, Telemetry
from meshwright.mesh.policies.upstreams import UpstreamPolicy
from meshwright.mesh.service import Scope, Service
from meshwright.mesh.workload import Health, PodTemplate, Workload


class NamedObject(Protocol):
    """Key with a namespace and a name, as the keys of values of one kind have."""

    @property
    def namespace(self) -> Namespace:
        """Return the namespace of the object."""
        ...

    @property
    def name(self) -> str:
        """Return the name of the object within the namespace."""
        ...


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """An object's kind, namespace and name; the namespace of a cluster-wide object is empty."""

    kind: Kind
    namespace: Namespace
    name: str

    @classmethod
    def from_name(cls, kind: Kind, key: NamedObject) -> "ObjectKey":
        """Return the key of the object with this kind and the namespace and name of a value's key."""
        return cls(kind, key.namespace, key.name)

    @classmethod
    def of_namespace(cls, name: str) -> "ObjectKey":
        """Return the key of a Namespace."""
        return cls(NAMESPACE, Namespace(""), name)

    @property
    def claim(self) -> "ObjectKey":
        """Key of the object in a source, common to all kinds read as the same one.

        For example, a Pod and a Workload `shop/cart-1` have the same claim.
        """
        kind = READ_AS.get(self.kind)
        return self if kind is None else ObjectKey.from_name(kind, self)

    def forms(self) -> tuple["ObjectKey", ...]:
        """Return the possible keys of the object of a claim; the claim itself is the last."""
        kinds = FORMS.get(self.kind)
        return (self,) if kinds is None else tuple([ObjectKey.from_name(kind, self) for kind in kinds])

    @property
    def path(self) -> str:
        """Namespace and name as `<namespace>/<name>`, or the name alone for a cluster-wide object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


@dataclass(frozen=True, slots=True, order=True)
class EndpointSlice:
    """discovery.k8s.io EndpointSlice (or core Endpoints): addresses of one service.

    Each address is in one of `addresses` (ready), `draining` and `unready` (see `mesh.workload.Health`).
    `ports` are pairs of a port's name and number, `zones` pairs of an address and its zone, if known.
    """

    service: str
    namespace: Namespace
    name: str
    addresses: tuple[str, ...]
    ports: tuple[tuple[str, int], ...]
    draining: tuple[str, ...] = ()
    unready: tuple[str, ...] = ()
    zones: tuple[tuple[str, str], ...] = ()

    @property
    def healths(self) -> Iterator[tuple[str, Health]]:
        """Yield all addresses of the slice's endpoints, each with the endpoint's health."""
        for health, result in (
            (Health.READY, self.addresses),
            (Health.DRAINING, self.draining),
            (Health.UNREADY, self.unready),
        ):
            yield from ((address, health) for address in result)


@dataclass(frozen=True, slots=True)
class NamespaceObject:
    """core Namespace with its labels and annotations, as sorted pairs.

    `permissive` is True if the workloads accept every client of the mesh; None leaves the decision to the
    MeshConfig. `scope` narrows the services in their configuration.
    """

    name: Namespace
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    permissive: bool | None = None
    scope: Scope = None


MeshObject = (
    BackendTLSPolicy
    | CaBundle
    | ClientTrafficPolicy
    | ExternalAuthorization
    | Egress
    | EndpointSlice
    | ExtensionService
    | Gateway
    | GatewayClass
    | GatewayTCPRoute
    | GRPCRoute
    | HTTPRoute
    | HTTPRouteGroup
    | IngressBackend
    | ListenerSet
    | MeshConfig
    | MeshRootCertificate
    | MutualTLS
    | NamespaceObject
    | PodTemplate
    | ReferenceGrant
    | Retry
    | RoutePolicy
    | Service
    | ServiceIdentity
    | TCPRoute
    | Telemetry
    | TLSRoute
    | TlsSecret
    | TrafficSplit
    | TrafficTarget
    | UpstreamPolicy
    | UpstreamTrafficSetting
    | Workload
)


def created_of(value: MeshObject) -> str:
    """Return a value's `metadata.creationTimestamp`.

    Empty if missing, or not read for this kind. For example: `2026-03-01T12:00:00Z`.
    """
    return str(getattr(value, "created", ""))


def created_at(value: MeshObject, created: str) -> MeshObject:
    """Return an object with another `metadata.creationTimestamp`; unchanged for kinds without one."""
    # The same object if nothing changes, so comparisons by identity still find it equal.
    if getattr(value, "created", created) == created:
        return value
    changed: MeshObject = replace(cast("Any", value), created=created)
    return changed


@dataclass(frozen=True, slots=True)
class SourcedObject:
    """An object in force, with the origin.

    `stale` is True if the newest form is bad, and this is the last good one.
    """

    key: ObjectKey
    value: MeshObject
    origin: Origin
    stale: bool = False
