"""Routes of the Gateway API for a mesh, and the grants for references between namespaces.

An `HTTPRoute` is of group gateway.networking.k8s.io. SMI's `TCPRoute` is another kind
(`meshwright.mesh.policies.smi`).
"""

from dataclasses import dataclass
from typing import ClassVar

from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY_TCP_ROUTE, GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True, order=True)
class MatchPlace:
    """Place of a match in a route: the numbers of the rule and of the match in the rule, both from 0."""

    rule: int
    match: int

    def __str__(self) -> str:
        return f"spec.rules[{self.rule}].matches[{self.match}]"


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """Fields that all kinds of routes have.

    `hostnames` are in lower case; a mesh does not interpret them. `generation` is `metadata.generation`, 0 if
    missing, and `created` is `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    Each class of routes is of one `kind`.
    """

    kind: ClassVar[Kind]

    key: PolicyKey
    parents: tuple[ParentRef, ...] = ()
    hostnames: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    generation: int = 0
    created: str = ""


@dataclass(frozen=True, slots=True)
class HTTPRoute(GatewayRoute):
    """gateway.networking.k8s.io HTTPRoute: rules for HTTP requests."""

    kind: ClassVar[Kind] = HTTP_ROUTE


@dataclass(frozen=True, slots=True)
class GRPCRoute(GatewayRoute):
    """gateway.networking.k8s.io GRPCRoute: rules for gRPC calls."""

    kind: ClassVar[Kind] = GRPC_ROUTE


@dataclass(frozen=True, slots=True)
class TLSRoute(GatewayRoute):
    """gateway.networking.k8s.io TLSRoute: TLS connections by the server name that the client asks for."""

    kind: ClassVar[Kind] = TLS_ROUTE


@dataclass(frozen=True, slots=True)
class TCPRoute(GatewayRoute):
    """gateway.networking.k8s.io TCPRoute: TCP connections."""

    kind: ClassVar[Kind] = GATEWAY_TCP_ROUTE


@dataclass(frozen=True, slots=True, order=True)
class GrantedFrom:
    """Objects of a kind in a namespace that may refer to others."""

    kind: Kind
    namespace: Namespace


@dataclass(frozen=True, slots=True, order=True)
class GrantedTo:
    """Objects of a kind to which others may refer; without a `name` all of the grant's namespace."""

    kind: Kind
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ReferenceGrant:
    """gateway.networking.k8s.io ReferenceGrant: references from other namespaces into its own."""

    key: PolicyKey
    sources: tuple[GrantedFrom, ...]
    targets: tuple[GrantedTo, ...]
