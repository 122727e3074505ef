"""What the operator of the control plane decides, not the manifests."""

import enum
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import Resilience
from meshwright.mesh.tls_keys import ServiceKeys

DEFAULT_TRUST_DOMAIN: Final = TrustDomain("cluster.local")

VIRTUAL_IPV6: Final = IPv6Network("2001:2::/96")
"""Of the addresses that nobody has outside a laboratory (RFC 5180), as 240.0.0.0/8 is of IPv4."""


class EndpointAdmission(enum.StrEnum):
    """What a sidecar must have done once before its workload gets traffic.

    OFF: nothing. IDENTITY: it has authenticated with its certificate. READY: it has acknowledged listeners.
    """

    OFF = "off"
    IDENTITY = "identity"
    READY = "ready"


class Admission(enum.Enum):
    """What is known of a proxy by its certificates and streams: whether its workload may get traffic.

    ADMITTED: it has done what the mode asks for. WITHDRAWN: its certificates were revoked, and whatever the
    mode its workload gets none until the proxy comes with another one.
    """

    ADMITTED = enum.auto()
    WITHDRAWN = enum.auto()


class DenialReasons(enum.StrEnum):
    """To whom a sidecar says why it has denied a request.

    CALLERS: to callers of the mesh, in a header of the answer, and in its access log. LOG: there alone. OFF:
    to nobody; it does not look for the reason then.
    """

    CALLERS = "callers"
    LOG = "log"
    OFF = "off"


class MethodOverrides(enum.StrEnum):
    """What a sidecar does with headers by which an application takes another method than the request's.

    KEEP: they reach the application, as any header does. REMOVE: its sidecar takes them away.
    """

    KEEP = "keep"
    REMOVE = "remove"


METHOD_OVERRIDE_HEADERS: Final = ("x-http-method", "x-http-method-override", "x-method-override")
"""The headers that web frameworks know for this, sorted."""


@dataclass(frozen=True, slots=True)
class HeaderLimits:
    """How many headers a request or a response may have, and how long they may be taken together."""

    count: int = 1000
    kibibytes: int = 64


@dataclass(frozen=True, slots=True)
class MeshSettings:
    """The mesh's names, the ranges from which services get addresses that have none, and who gets traffic.

    `endpoint_admission` is OFF where no server is asked: then nobody knows who connected. `headers` bounds
    what proxies take. `denials`: who is told why a request was denied. `trace_sampling`: how many of a
    hundred requests are traced, where the MeshConfig has a collector. `resilience`: what proxies do about
    endpoints that fail. `method_overrides`: whether headers that name another method reach applications.
    `long_lived`: which HTTP upgrades proxies pass, and when they end quiet TCP connections.
    `service_keys`: the kind of the keys of service certificates.
    """

    trust_domain: TrustDomain = DEFAULT_TRUST_DOMAIN
    cluster_domain: str = "cluster.local"
    virtual_addresses: IPv4Network = field(default_factory=lambda: IPv4Network("240.0.0.0/8"))
    endpoint_admission: EndpointAdmission = EndpointAdmission.OFF
    headers: HeaderLimits = field(default_factory=HeaderLimits)
    denials: DenialReasons = DenialReasons.CALLERS
    trace_sampling: float = 100.0
    resilience: Resilience = field(default_factory=Resilience)
    virtual_addresses_ipv6: IPv6Network = VIRTUAL_IPV6
    method_overrides: MethodOverrides = MethodOverrides.KEEP
    long_lived: LongLived = field(default_factory=LongLived)
    service_keys: ServiceKeys = ServiceKeys.ECDSA_P256
