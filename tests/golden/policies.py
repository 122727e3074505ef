"""Golden cases from values: policies that no manifest makes yet, by case and by the name of their proxy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from catalog.policy.proxy import (
    Access,
    AccessRule,
    EveryoneInTheMesh,
    InboundPort,
    InterceptionKind,
    OnlyRules,
    ProxyPolicy,
    SocketAddress,
    TlsRange,
)
from mesh.callers import AuthenticatedName, Caller, IpRange
from mesh.config import TlsVersion
from mesh.identity import ServiceIdentity
from mesh.kinds import TRAFFIC_TARGET, Kind
from mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName, TrustDomain
from mesh.objects import ObjectKey
from mesh.policy import HTTPMatch
from mesh.service import Protocol, ServiceKey
from mesh.workload import Transparent

GOLDEN: Final = Namespace("golden")
SHOP: Final = ServiceKey(GOLDEN, ServiceName("shop"))
BUYER: Final = ServiceIdentity(GOLDEN, ServiceAccountName("buyer"))
GATEWAY: Final = Kind("Gateway", "example.org")
"""A kind that nobody reads."""


def bare(kind: InterceptionKind = InterceptionKind.TRANSPARENT) -> ProxyPolicy:
    """Return the policy of the shop's proxy, which calls nobody and is called by nobody."""
    return ProxyPolicy(
        ServiceIdentity(GOLDEN, ServiceAccountName("shop")),
        SHOP,
        TrustDomain("cluster.local"),
        kind,
        TlsRange(TlsVersion.V1_2, TlsVersion.V1_3),
        inbound=(),
        outbound=(),
        destinations=(),
    )


def rule(kind: Kind, *callers: Caller, matches: tuple[HTTPMatch, ...] | None = None) -> AccessRule:
    """Return what an object of that kind, `golden/it`, admits."""
    return AccessRule(ObjectKey(kind, GOLDEN, "it"), callers, matches)


def port(number: int, protocol: Protocol, access: Access, listen: SocketAddress | None = None) -> InboundPort:
    """Return a port at which the shop is called."""
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
_TCP: Final = tuple(replace(each, matches=None) for each in _IT)
_INBOUND: Final = (
    port(8080, Protocol.HTTP, OnlyRules(_IT)),
    port(8081, Protocol.HTTP, EveryoneInTheMesh(_IT[1:])),
    port(9090, Protocol.TCP, OnlyRules(_TCP)),
    port(9091, Protocol.TCP, OnlyRules((rule(GATEWAY, IpRange("192.0.2.7/32")),))),
)

POLICIES: Final[Mapping[str, Mapping[str, ProxyPolicy]]] = {
    "callers_from_outside": {
        "golden.shop": replace(bare(), inbound=_INBOUND, transparent=Transparent(ipv6=True)),
    },
}
