"""ReferenceGrants: which references they permit, and what a gateway makes of a route without one."""

from dataclasses import replace

import pytest

from catalog.relations.gateways.grants import is_granted
from catalog.relations.references import resolved_rules, resolved_rules_at_gateways
from catalog.relations.verdicts import BrokenReference, ResolvedBackend, ResolvedReason, ServicePlace
from catalog.store.view import View
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY, GRPC_ROUTE, HTTP_ROUTE, SERVICE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.meshes import gateway as g
from tests.meshes import values as a

WEB, BACKENDS = Namespace("web"), Namespace("backends")
V1 = replace(a.service("v1", address="10.1.0.1"), key=a.service_key("v1", "backends"))
TARGET = ObjectKey(SERVICE, BACKENDS, "v1")


def grant(
    source: Kind = HTTP_ROUTE, namespace: str = "web", name: str | None = None, home: str = "backends"
) -> ReferenceGrant:
    """Make a grant for Services, all of them or one."""
    sources = (GrantedFrom(source, Namespace(namespace)),)
    return ReferenceGrant(a.policy_key("grant", home), sources, (GrantedTo(SERVICE, name),))


@pytest.mark.parametrize(
    ("given", "is_permitted"),
    [
        (grant(), True),
        (grant(name="v1"), True),
        (grant(name="v2"), False),
        (grant(GRPC_ROUTE), False),
        (grant(GATEWAY), False),
        (grant(namespace="other"), False),
        (grant(home="web"), False),  # a grant counts in the namespace of the target
    ],
)
def test_grant_names_source_and_target(given: ReferenceGrant, *, is_permitted: bool) -> None:
    """GatewaySecretInvalidReferenceGrant and its kin: kind, namespace and name must all fit."""
    assert is_granted(_view(given), HTTP_ROUTE, WEB, TARGET) is is_permitted


def test_reference_within_a_namespace_needs_no_grant() -> None:
    """The target need not exist."""
    assert is_granted(g.view(), HTTP_ROUTE, BACKENDS, TARGET)


def test_gateway_refuses_a_reference_without_a_grant_and_the_mesh_does_not() -> None:
    """HTTPRouteInvalidCrossNamespaceBackendRef: also if the Service does not exist."""
    rule = Rule(backends=(g.to("v1", namespace="backends"), g.to("missing", namespace="backends")))
    route = g.http_route("route", rule, parents=(g.at("edge"),), namespace="web")

    def reasons(*given: ReferenceGrant) -> list[ResolvedReason]:
        (resolved,) = resolved_rules_at_gateways(_view(route, *given), g.key_of(route))
        return [item.reason for item in resolved.unresolved]

    assert reasons() == [ResolvedReason.REF_NOT_PERMITTED] * 2
    assert reasons(grant(name="v1")) == [ResolvedReason.REF_NOT_PERMITTED]
    assert reasons(grant()) == [ResolvedReason.BACKEND_NOT_FOUND]
    (in_mesh,) = resolved_rules(_view(route), g.key_of(route))
    assert in_mesh.backends[0] == ResolvedBackend(ServicePlace(V1.key, a.port(80)))
    (refused,) = resolved_rules_at_gateways(_view(route), g.key_of(route))
    assert refused.backends[0].to == BrokenReference(
        ResolvedReason.REF_NOT_PERMITTED,
        "no ReferenceGrant of namespace backends lets HTTPRoutes of namespace web refer to Service "
        "backends/v1",
        "spec.rules[0].backendRefs[0]",
    )


def _view(*things: object) -> View:
    return g.view(V1, *things)
