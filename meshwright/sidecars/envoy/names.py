"""Names of Envoy resources, taken from Open Service Mesh unless there is a reason against it."""

import hashlib
from collections.abc import Iterable
from typing import Final

from catalog.policy.values.destinations import Destination, ExternalDestination, ServiceDestination
from catalog.policy.values.edge import EdgeChain, EdgePort
from catalog.policy.values.inbound import ExternalAuthorizer
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsideRange
from catalog.policy.values.route_actions import HttpVersion, WeightedBackend
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port, TrustDomain
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ExternalHost, ServiceKey
from meshwright.sidecars import layout

INBOUND_LISTENER: Final = "inbound-listener"
TPROXY_LISTENER: Final = "inbound-listener-tproxy"
OUTBOUND_LISTENER: Final = "outbound-listener"
EDGE_LISTENER: Final = "edge-listener"
PASSTHROUGH_CLUSTER: Final = "passthrough-outbound"
PASSTHROUGH_HTTP_CLUSTER: Final = "passthrough-outbound-http"
BLACKHOLE_CLUSTER: Final = "blackhole-outbound"
AUTHORIZER_CLUSTER: Final = "envoy-authorizer-cluster"
TRACING_CLUSTER: Final = "envoy-tracing-cluster"
EGRESS_CHAIN: Final = "outbound-egress-filter-chain"
CLOSED_CHAIN: Final = "outbound-closed-filter-chain"
LOOP_CHAIN: Final = "outbound-loop-filter-chain"
SERVICE_CERTIFICATE: Final = "service-cert"
"""Name of every proxy's own certificate.

All proxies use the same name, so that callers of a service share resources.
"""

OUTBOUND_PORT: Final = Port(layout.OUTBOUND_PORT)
"""Port to which iptables redirects a workload's own calls (transparent interception)."""
INBOUND_PORT: Final = Port(layout.INBOUND_PORT)
"""Port to which iptables redirects calls to a workload (transparent interception)."""
TPROXY_PORT: Final = Port(layout.TPROXY_PORT)
"""Port to which iptables passes calls to a workload with their addresses unchanged (TPROXY)."""


NO_CLUSTER: Final = "no-cluster"
"""Name of no cluster: Envoy closes connections that a TCP proxy sends there."""


def cluster(place: WeightedBackend | Destination) -> str:
    """Return a cluster's name, for example `shop/cart|8080`.

    The target port is a number or a name, as in the policy.

    The name ends in `|as-called` if the called endpoint itself must answer, and in `|http1` or `|http2` if
    requests are sent in this version. With a BackendTLSPolicy `|tls|<ns>/<policy>` follows. For a host
    outside of the mesh the name is `<host>:<port>`.
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
    if place.version is not HttpVersion.CALLERS:
        name = f"{name}|{place.version}"
    if place.tls is not None:
        policy = place.tls if isinstance(place.tls, PolicyKey) else place.tls.policy
        return f"{name}|tls|{policy}"
    return f"{name}|as-called" if place.as_called else name


def authorizer_cluster(authorizer: ExternalAuthorizer) -> str:
    """Return the cluster's name of an external authorizer: the mesh's, or an object's own."""
    return (
        AUTHORIZER_CLUSTER
        if authorizer.by is None
        else f"{AUTHORIZER_CLUSTER}|{authorizer.authorizer.server}"
    )


def rate_limit_cluster(server: HostPort) -> str:
    """Return the cluster's name of a rate limit service."""
    return f"envoy-rate-limit-cluster|{server}"


def extension_cluster(service: PolicyKey) -> str:
    """Return the cluster's name of an ExtensionService."""
    return f"envoy-extension-cluster|{service}"


def _outside(host: ExternalHost, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host.name else f"{host}:{port}"


def local_cluster(primary: ServiceKey, port: Port) -> str:
    """Return the cluster's name of the application behind an inbound port.

    For example, `shop/cart|8080|local` for the primary service `shop/cart`.
    """
    return f"{primary}|{port}|local"


def inbound_routes(port: Port) -> str:
    """Return `rds-inbound.<port>`."""
    return f"rds-inbound.{port}"


def outbound_routes(service: OutboundService) -> str:
    """Return `rds-outbound.<ns>/<service>|<service port>`; for a host outside of the mesh with the host.

    There is one route configuration per service and port, because the filter chain has already selected the
    service by its address. Therefore a changed split changes one route configuration, and a Host header
    selects nothing.
    """
    return f"rds-outbound.{service.upstream}|{service.port}"


def edge_routes(port: Port, chain: EdgeChain) -> str:
    """Return `rds-edge.<port>` for a port of a gateway's proxies, followed by the server name with TLS.

    For example, `rds-edge.443|*.shop.example`, and `rds-edge.443|*` for all other server names.
    """
    return f"rds-edge.{port}{_asked(chain)}"


def edge_host(chain: EdgeChain, hostname: str) -> str:
    """Return `edge|<listener>|<host>` for a virtual host, under which its routes are counted.

    The listener is the server name of its chain, for example `*.shop.example`, and `*` in plain text.
    """
    return f"edge{_asked(chain) or '|*'}|{hostname}"


def edge_connections(port: Port, chain: EdgeChain) -> str:
    """Return `edge.<port>` for connections without visible requests; with TLS the server name follows."""
    return f"edge.{port}{_asked(chain)}"


def edge_chain(port: EdgePort, chain: EdgeChain) -> str:
    """Return `edge_<ns>/<gateway>_<port>`, followed by the server name with TLS."""
    return f"edge_{port.gateway}_{port.port}{_asked(chain)}"


def _asked(chain: EdgeChain) -> str:
    return "" if chain.tls is None else f"|{chain.tls.server_name or '*'}"


def counted_route(port: Port, by: Iterable[PolicyKey], requests: Iterable[str]) -> str:
    """Return the name under which a route of a port is counted.

    `<port>|<ns>/<object>/<match>` or `<port>|rest`.

    `by` are the objects behind the route (for example TrafficSplit and RoutePolicy), joined by `+`.
    `requests` are names of matches, or of a rule, and are joined by commas. A colon is avoided, because Envoy
    turns it into an underscore in names of statistics.
    """
    words = "+".join(map(str, by)) or "rest"
    return f"{port}|{'/'.join(filter(None, (words, ','.join(requests))))}"


def outside_routes(port: Port, to: OutsideRange) -> str:
    """Return `rds-egress.<port>`, followed by the first range if there are ranges."""
    return f"rds-egress.{port}{_first(to)}"


def outside_chain(protocol: str, port: Port, to: OutsideRange) -> str:
    """Return `egress-<protocol>.<port>`, followed by the first range if there are ranges.

    For example, `egress-tcp.5432|192.0.2.0/24`.
    """
    return f"egress-{protocol}.{port}{_first(to)}"


def _first(to: OutsideRange) -> str:
    return f"|{to.networks[0]}" if to.networks else ""


def listener(kind: str, where: SocketAddress) -> str:
    """Return the name of a listener for explicit interception: kind, address and port.

    For example, `outbound-listener|127.0.0.1|9001`.
    """
    return f"{kind}|{where.address}|{where.port}"


def caller(identity: ServiceIdentity, trust_domain: TrustDomain) -> str:
    """Return the label that identifies a caller of a TCP port, the last part of the TLS server name.

    The label only selects a filter chain, which demands a proof. The label is `c` and a hash of the SPIFFE
    ID.
    """
    return f"c{hashlib.sha256(identity.spiffe_id(trust_domain).encode()).hexdigest()[:16]}"


def edge_certificate(secret: PolicyKey) -> str:
    """Return `gateway-cert:<ns>/<name>`, for a gateway's Secret."""
    return f"gateway-cert:{secret}"


def client_authorities(gateway: PolicyKey, port: Port) -> str:
    """Return `gateway-ca:<ns>/<name>|<port>`, for the CA certificates of the clients of a gateway's port."""
    return f"gateway-ca:{gateway}|{port}"


def trust_root(trust_domain: TrustDomain) -> str:
    """Return `root-cert:<trust domain>`."""
    return f"root-cert:{trust_domain}"
