"""Golden cases from values: policies that no manifest makes yet, by case and by the name of their proxy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from catalog.policy.values.destinations import ExternalDestination, TlsOrigination
from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import Forward, WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from catalog.policy.values.terms import TlsRange
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET, Kind
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName, TrustDomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import AuthenticatedName, Caller, IpRange
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import ExternalHost, Protocol, ServiceKey
from meshwright.mesh.workload import Transparent
from tests.golden import route_actions

GOLDEN: Final = Namespace("golden")
SHOP: Final = ServiceKey(GOLDEN, ServiceName("shop"))
BUYER: Final = ServiceIdentity(GOLDEN, ServiceAccountName("buyer"))
GATEWAY: Final = Kind("Gateway", "example.org")
"""A kind that nobody reads."""
ROOTS: Final = """-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUViUx+HqaTKfc5BG8KYblVqn5f2AwCgYIKoZIzj0EAwIw
HzEdMBsGA1UEAwwUcm9vdHMgb2YgZXhhbXBsZS5vcmcwIBcNMjYxMTIyMDQ0NDA4
WhgPMjEyNjEwMjkwNDQ0MDhaMB8xHTAbBgNVBAMMFHJvb3RzIG9mIGV4YW1wbGUu
b3JnMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEczUejKDk1UqOenPu26faOIiO
F+L81p+8NBrDJwMwB03e0iYHoW6rspeTmesK0jRVQORHV8DDNH4xxmVwA9AQL6NT
MFEwHQYDVR0OBBYEFIXsyLlMOa48TxpGdHftGV4fXtPyMB8GA1UdIwQYMBaAFIXs
yLlMOa48TxpGdHftGV4fXtPyMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwID
RwAwRAIgVI+cSiFPgE/5XnVlYyZrtXV/phz2VWEPaJCNvNw68yUCIE2N86DFXsRj
NjA6LJp4n6nyeJCyGK438V25RkGalq7s
-----END CERTIFICATE-----
"""
"""Somebody's certificate, until 2126; nobody has its key."""


def bare(kind: InterceptionKind = InterceptionKind.TRANSPARENT) -> ProxyPolicy:
    """Return the policy of the shop's proxy without callers and without services to call."""
    return ProxyPolicy(
        ServiceIdentity(GOLDEN, ServiceAccountName("shop")),
        SHOP,
        TrustDomain("cluster.local"),
        kind,
        TlsRange(TlsVersion.V1_2, TlsVersion.V1_3),
        inbound=(),
        reachable=(),
    )


def rule(kind: Kind, *callers: Caller, matches: tuple[HTTPMatch, ...] | None = None) -> AccessRule:
    """Return the access rule of an object `golden/it` of this kind."""
    return AccessRule(ObjectKey(kind, GOLDEN, "it"), callers, matches)


def port(number: int, protocol: Protocol, access: Access, listen: SocketAddress | None = None) -> InboundPort:
    """Return an inbound port of the shop."""
    application = SocketAddress(IpAddress("127.0.0.1"), Port(number))
    return InboundPort(Port(number), protocol, (SHOP,), application, access, listen)


_IT: Final = (
    rule(TRAFFIC_TARGET, BUYER),
    rule(
        GATEWAY,
        IpRange("10.0.0.0/8"),
        IpRange("fd00::/16"),
        AuthenticatedName("gateway.example.org"),
        AuthenticatedName("spiffe://cluster.local/gateway"),
        matches=(HTTPMatch("books", "/books.*", ("GET",)),),
    ),
)
_TCP: Final = tuple(replace(access_rule, matches=None) for access_rule in _IT)
_INBOUND: Final = (
    port(8080, Protocol.HTTP, OnlyRules(_IT)),
    port(8081, Protocol.HTTP, EveryoneInTheMesh(_IT[1:])),
    port(9090, Protocol.TCP, OnlyRules(_TCP)),
    port(9091, Protocol.TCP, OnlyRules((rule(GATEWAY, IpRange("192.0.2.7/32")),))),
)


def external(name: str, number: int, *, http: bool, tls: TlsOrigination | None = None) -> ExternalDestination:
    """Return a port of a host outside the mesh."""
    return ExternalDestination(ExternalHost(name), Port(number), http, tls)


def calls(to: ExternalDestination, listen: SocketAddress) -> OutboundService:
    """Return a host outside the mesh, called at a local address of the proxy."""
    entry = RouteEntry((), Forward((WeightedBackend(to.host, str(to.port), 1),)))
    protocol = Protocol.HTTP if to.is_http else Protocol.TCP
    return OutboundService(to.host, to.port, protocol, (entry,), listen=(listen,))


def calling(*hosts: ExternalDestination) -> ProxyPolicy:
    """Return the policy of a proxy that offers these hosts from 127.0.90.1:9000 on."""
    at = (SocketAddress(IpAddress("127.0.90.1"), Port(9000 + number)) for number in range(len(hosts)))
    outbound_services = tuple(calls(host, where) for host, where in zip(hosts, at, strict=True))
    return replace(
        bare(InterceptionKind.EXPLICIT), reachable=(ReachableServices.from_sorted(outbound_services, hosts),)
    )


_EXTERNAL: Final = (
    external("api.example.org", 80, http=True),
    external("api.example.org", 443, http=True, tls=TlsOrigination("api.example.org", ROOTS)),
    external("192.0.2.7", 5432, http=False),
)

POLICIES: Final[Mapping[str, Mapping[str, ProxyPolicy]]] = {
    "callers_from_outside": {
        "golden.shop": replace(bare(), inbound=_INBOUND, transparent=Transparent(ipv6=True)),
    },
    "external_hosts": {"golden.shop": calling(*_EXTERNAL)},
    "route_actions": {"golden.shop": route_actions.policy(bare())},
}
