"""Names of resources on the wire; where there is no reason against it, those of Open Service Mesh."""

import hashlib
from collections.abc import Iterable
from typing import Final

from catalog.policy.values.destinations import Destination, ExternalDestination, ServiceDestination
from catalog.policy.values.inbound import ExternalAuthorizer
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundService, WeightedBackend
from catalog.policy.values.outside import OutsideRange
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port, TrustDomain
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import ExternalHost, ServiceKey
from meshwright.sidecars import layout

INBOUND_LISTENER: Final = "inbound-listener"
TPROXY_LISTENER: Final = "inbound-listener-tproxy"
OUTBOUND_LISTENER: Final = "outbound-listener"
PASSTHROUGH_CLUSTER: Final = "passthrough-outbound"
PASSTHROUGH_HTTP_CLUSTER: Final = "passthrough-outbound-http"
BLACKHOLE_CLUSTER: Final = "blackhole-outbound"
AUTHORIZER_CLUSTER: Final = "envoy-authorizer-cluster"
TRACING_CLUSTER: Final = "envoy-tracing-cluster"
EGRESS_CHAIN: Final = "outbound-egress-filter-chain"
CLOSED_CHAIN: Final = "outbound-closed-filter-chain"
LOOP_CHAIN: Final = "outbound-loop-filter-chain"
SERVICE_CERTIFICATE: Final = "service-cert"
"""A proxy's own certificate, whosever it is: so what all callers need of a service is the same resource."""

OUTBOUND_PORT: Final = Port(layout.OUTBOUND_PORT)
"""Where iptables redirect a workload's own calls (transparent interception)."""
INBOUND_PORT: Final = Port(layout.INBOUND_PORT)
"""Where iptables redirect calls to a workload (transparent interception)."""
TPROXY_PORT: Final = Port(layout.TPROXY_PORT)
"""Where iptables hand over calls to a workload as they are (TPROXY)."""


def cluster(place: WeightedBackend | Destination) -> str:
    """Return `<ns>/<service>|<target port>`, as the policy has the target port: a number or a name.

    Where the endpoint that was called answers, it ends in `|as-called`. A host outside has `<host>:<port>`.
    """
    match place:
        case ExternalDestination(host, port):
            return _outside(host, str(port))
        case WeightedBackend(ExternalHost() as host, target_port):
            return _outside(host, target_port)
        case ServiceDestination():
            name = f"{place.service}|{place.target_port}"
        case WeightedBackend(upstream):
            name = f"{upstream}|{place.target_port}"
    return f"{name}|as-called" if place.as_called else name


def authorizer_cluster(asked: ExternalAuthorizer) -> str:
    """Return the name of the cluster of an authorizer: the mesh's, or one that an object names."""
    return AUTHORIZER_CLUSTER if asked.by is None else f"{AUTHORIZER_CLUSTER}|{asked.authorizer.server}"


def rate_limit_cluster(server: HostPort) -> str:
    """Return the name of the cluster of a service that counts."""
    return f"envoy-rate-limit-cluster|{server}"


def extension_cluster(service: PolicyKey) -> str:
    """Return the name of the cluster of an ExtensionService."""
    return f"envoy-extension-cluster|{service}"


def _outside(host: ExternalHost, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host.name else f"{host}:{port}"


def local_cluster(primary: ServiceKey, port: Port) -> str:
    """Return `<ns>/<primary service>|<port>|local`: the application behind an inbound port."""
    return f"{primary}|{port}|local"


def inbound_routes(port: Port) -> str:
    """Return `rds-inbound.<port>`."""
    return f"rds-inbound.{port}"


def outbound_routes(service: OutboundService) -> str:
    """Return `rds-outbound.<ns>/<service>|<service port>`; of a host outside it has its name.

    One per service and port: the filter chain has chosen the service by its address, so a changed split
    changes one route configuration and a Host header decides nothing.
    """
    return f"rds-outbound.{service.upstream}|{service.port}"


def counted_route(port: Port, by: Iterable[PolicyKey | None], matches: tuple[HTTPMatch, ...]) -> str:
    """Return `<port>|<ns>/<object>/<match>`, by which a route of a port is counted, or `<port>|rest`.

    `by` are the objects that make it one, TrafficSplit and RoutePolicy: both are joined by `+`, matches by
    commas. In the names of statistics Envoy makes an underscore of a colon.
    """
    words = "+".join(str(each) for each in by if each is not None and each.name) or "rest"
    return f"{port}|{'/'.join(filter(None, (words, ','.join(each.name for each in matches))))}"


def outside_routes(port: Port, to: OutsideRange) -> str:
    """Return `rds-egress.<port>`; with the first range, where there are ranges."""
    return f"rds-egress.{port}{_first(to)}"


def outside_chain(protocol: str, port: Port, to: OutsideRange) -> str:
    """Return `egress-<protocol>.<port>`; with the first range, where there are ranges."""
    return f"egress-{protocol}.{port}{_first(to)}"


def _first(to: OutsideRange) -> str:
    return f"|{to.networks[0]}" if to.networks else ""


def listener(kind: str, where: SocketAddress) -> str:
    """Return the name of a listener of explicit interception, `<kind>|<address>|<port>`."""
    return f"{kind}|{where.address}|{where.port}"


def caller(identity: ServiceIdentity, trust_domain: TrustDomain) -> str:
    """Return the label by which a caller of a TCP port says in TLS who it is, last in the server's name.

    It proves nothing, and chooses a filter chain that demands the proof: `c` and a hash of the SPIFFE ID.
    """
    return f"c{hashlib.sha256(identity.spiffe_id(trust_domain).encode()).hexdigest()[:16]}"


def trust_root(trust_domain: TrustDomain) -> str:
    """Return `root-cert:<trust domain>`."""
    return f"root-cert:{trust_domain}"
