"""Parts of a policy that a resource is about, for the look-up of its provenance."""

from dataclasses import dataclass

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port, TrustDomain
from meshwright.mesh.service import Protocol, ServiceKey


@dataclass(frozen=True, slots=True)
class WholePolicy:
    """The whole policy of a group of proxies, as a part."""


@dataclass(frozen=True, slots=True)
class AllInbound:
    """All inbound ports of a group, as a part of its policy."""


@dataclass(frozen=True, slots=True)
class AllOutbound:
    """All services that a group may call, as a part of its policy."""


@dataclass(frozen=True, slots=True)
class InboundAdmission:
    """The admission of callers at an inbound port of these services."""

    port: Port
    protocol: Protocol
    services: tuple[ServiceKey, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """The application behind an inbound port of these services."""

    services: tuple[ServiceKey, ...]


@dataclass(frozen=True, slots=True)
class Calls:
    """The routes of outbound calls to a service's port."""

    service: ServiceKey
    port: Port


@dataclass(frozen=True, slots=True)
class DestinationPolicy:
    """A destination: its endpoints, and the identities that may answer."""

    service: ServiceKey
    target_port: str


@dataclass(frozen=True, slots=True)
class GatewayPorts:
    """The ports of a gateway's proxies, with their routes."""


@dataclass(frozen=True, slots=True)
class OutsideAccess:
    """The calls out of the mesh that a group may make."""


@dataclass(frozen=True, slots=True)
class MeshWide:
    """The configuration of the mesh alone, without policy for a service or proxy."""


@dataclass(frozen=True, slots=True)
class IdentityCertificate:
    """The certificate of an identity."""

    identity: ServiceIdentity


@dataclass(frozen=True, slots=True)
class Roots:
    """The CA certificates of a trust domain."""

    trust_domain: TrustDomain


Part = (
    WholePolicy
    | AllInbound
    | AllOutbound
    | InboundAdmission
    | Application
    | Calls
    | DestinationPolicy
    | GatewayPorts
    | OutsideAccess
    | MeshWide
    | IdentityCertificate
    | Roots
)
"""The part that a resource is about; cheap to make, because each resource has one."""
