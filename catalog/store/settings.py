"""Settings of the control plane's operator that affect the mesh, as opposed to manifests."""

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
"""A range for benchmarks (RFC 5180) that is not used outside laboratories, like 240.0.0.0/8 in IPv4."""


class EndpointAdmission(enum.StrEnum):
    """Condition for traffic to a workload, to be met once by its sidecar.

    OFF: none. IDENTITY: authentication with its certificate. READY: acknowledgement of its listeners.
    """

    OFF = "off"
    IDENTITY = "identity"
    READY = "ready"


class Admission(enum.Enum):
    """Admission of a proxy's workload to traffic, by the proxy's certificates and streams.

    ADMITTED: the condition of the mode is met. WITHDRAWN: the proxy's certificates were revoked; in every
    mode its workload gets no traffic until the proxy connects with a new certificate.
    """

    ADMITTED = enum.auto()
    WITHDRAWN = enum.auto()


class DenialReasons(enum.StrEnum):
    """Receivers of the reason when a sidecar denies a request.

    CALLERS: callers of the mesh, in a header of the response, and the access log. LOG: the access log only.
    OFF: none, and the reason is not determined.
    """

    CALLERS = "callers"
    LOG = "log"
    OFF = "off"


class MethodOverrides(enum.StrEnum):
    """Handling of headers that make an application use another method than the request's.

    KEEP: they reach the application like any header. REMOVE: the application's sidecar removes them.
    """

    KEEP = "keep"
    REMOVE = "remove"


METHOD_OVERRIDE_HEADERS: Final = ("x-http-method", "x-http-method-override", "x-method-override")
"""The headers that web frameworks use for this purpose, sorted."""


@dataclass(frozen=True, slots=True)
class HeaderLimits:
    """Maximum number of headers of a request or response, and their maximum total size."""

    count: int = 1000
    kibibytes: int = 64


@dataclass(frozen=True, slots=True)
class MeshSettings:
    """Names of the mesh, ranges of virtual addresses, and defaults for all proxies.

    - `endpoint_admission` is OFF for tools without a server, which do not know the connected proxies.
    - `headers` limits headers at proxies, and `denials` selects the receivers of reasons.
    - `trace_sampling` is the percentage of traced requests, if the MeshConfig has a collector.
    - `resilience` is the handling of failing endpoints.
    - `method_overrides` is the handling of headers that name another method.
    - `long_lived` has the allowed HTTP upgrades and the idle timeout of TCP connections.
    - `service_keys` is the kind of key of service certificates.
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
