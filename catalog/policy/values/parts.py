"""Parts of a policy: what a resource of a proxy is about, so that its provenance can be looked up."""

from dataclasses import dataclass

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port, TrustDomain
from meshwright.mesh.service import Protocol, ServiceKey


@dataclass(frozen=True, slots=True)
class WholePolicy:
    """All of a policy."""


@dataclass(frozen=True, slots=True)
class AllInbound:
    """All inbound ports."""


@dataclass(frozen=True, slots=True)
class AllOutbound:
    """All services that may be called."""


@dataclass(frozen=True, slots=True)
class InboundAdmission:
    """Whom an inbound port of these services admits."""

    port: Port
    protocol: Protocol
    services: tuple[ServiceKey, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """The application behind an inbound port of these services."""

    services: tuple[ServiceKey, ...]


@dataclass(frozen=True, slots=True)
class Calls:
    """Where calls to a service's port go."""

    service: ServiceKey
    port: Port


@dataclass(frozen=True, slots=True)
class DestinationPolicy:
    """A destination: where it is, and who may answer there."""

    service: ServiceKey
    target_port: str


@dataclass(frozen=True, slots=True)
class OutsideAccess:
    """What may be called outside the mesh."""


@dataclass(frozen=True, slots=True)
class MeshWide:
    """What the mesh's configuration alone decides."""


@dataclass(frozen=True, slots=True)
class IdentityCertificate:
    """The certificate of an identity."""

    identity: ServiceIdentity


@dataclass(frozen=True, slots=True)
class Roots:
    """The roots of a trust domain."""

    trust_domain: TrustDomain


Part = (
    WholePolicy
    | AllInbound
    | AllOutbound
    | InboundAdmission
    | Application
    | Calls
    | DestinationPolicy
    | OutsideAccess
    | MeshWide
    | IdentityCertificate
    | Roots
)
"""What a resource is about, in mesh words; parts are cheap to make, for each resource has one."""
