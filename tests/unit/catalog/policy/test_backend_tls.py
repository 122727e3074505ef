"""BackendTLSPolicies at gateways: TLS to endpoints without a sidecar, or failing requests."""

from dataclasses import replace

import pytest

from catalog.policy.edge import edge_ports, edge_secrets
from catalog.policy.group_policy import proxy_policy
from catalog.policy.provenance import made_from
from catalog.policy.values.destinations import BackendTls, ServiceDestination
from catalog.policy.values.parts import DestinationPolicy, GatewayPorts
from catalog.policy.values.route_actions import (
    Answer,
    AnsweredShare,
    Forward,
    HttpVersion,
    RouteAction,
    WeightedBackend,
)
from catalog.relations.groups import group_of
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.backend_tls import AltName, AltNameType
from meshwright.mesh.gateway.filters import Filters, Mirror
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import Edge
from tests.meshes import gateway as g
from tests.meshes import values as a

EDGE = replace(a.workload("edge", "10.0.0.9"), interception=Edge("edge"))
HTTPS = a.port(443, protocol=Protocol.TCP, name="https", source="name")
WEB = a.service("web", HTTPS, address="10.1.0.2")
BARE = replace(a.workload("web", "10.0.0.2"), uuid=None)
NAME = AltName(AltNameType.HOSTNAME, "web.example")
TLS = BackendTls(a.policy_key("tls"), "web.example", (NAME,), "[ca]")
ROUTE = g.http_route("shop", Rule(backends=(g.to("web", 443),)), parents=(g.at("edge"),))
MESH = (EDGE, g.CLASS, g.gateway("edge"), WEB)


def view(*things: object) -> View:
    """Return a mesh with a gateway, a route, and these objects."""
    return g.view(*MESH, ROUTE, *things)


def action(mesh: View) -> RouteAction:
    """Return what happens to requests of the only route."""
    (port,) = edge_ports(mesh, group_of(mesh, EDGE))
    (entry,) = port.chains[0].entries
    return entry.action


def destinations(mesh: View) -> list[ServiceDestination]:
    """Return the destinations of the gateway's proxy."""
    return list(proxy_policy(mesh, group_of(mesh, EDGE)).service_destinations)


def test_endpoints_without_sidecar_are_reached_with_tls() -> None:
    """The share names the policy, and the destination has what the policy demands."""
    mesh = view(BARE, g.backend_policy(), g.ca_bundle())
    share = WeightedBackend(WEB.key, "8080", 1, version=HttpVersion.HTTP1, tls=TLS.policy)
    assert action(mesh) == Forward((share,))
    (place,) = destinations(mesh)
    assert (place.plain, place.tls, [item.address for item in place.endpoints]) == (True, TLS, ["10.0.0.2"])


def test_well_known_certificates_are_the_systems() -> None:
    """Names replace the host name, which is still the requested server name."""
    names = (AltName(AltNameType.URI, "spiffe://web.example/web"),)
    (place,) = destinations(view(BARE, g.backend_policy(well_known="System", names=names)))
    assert place.tls == BackendTls(TLS.policy, "web.example", names, None)


def test_endpoint_with_sidecar_keeps_the_tls_of_the_mesh() -> None:
    """The sidecar proves its identity, and ends this TLS; the policy is without effect, also a broken one."""
    mesh = view(a.workload("web", "10.0.0.2"), MeshConfig(permissive=True), g.backend_policy())
    assert action(mesh) == Forward((WeightedBackend(WEB.key, "8080", 1, version=HttpVersion.HTTP1),))
    assert [(place.plain, place.tls) for place in destinations(mesh)] == [(False, None)]


@pytest.mark.parametrize(
    "policy",
    [
        g.backend_policy(),
        g.backend_policy(well_known="example.com/own"),
        replace(g.backend_policy(well_known="System"), dropped="spec.validation.new is unknown"),
    ],
    ids=["missing CA", "unknown set of certificates", "unreadable"],
)
def test_requests_fail_if_no_certificate_can_be_verified(policy: object) -> None:
    """Nothing is sent to the backend, neither in plain text nor unverified; copies are not made."""
    assert action(view(BARE, policy)) == Answer(500)
    assert destinations(view(BARE, policy)) == []
    connection = g.tcp_route("db", Rule(backends=(g.to("web", 443),)), parents=(g.at("edge"),))
    tcp = g.view(EDGE, g.CLASS, g.gateway("edge", g.listener(protocol="TCP")), WEB, BARE, policy, connection)
    (port,) = edge_ports(tcp, group_of(tcp, EDGE))
    assert [entry.action for entry in port.chains[0].entries] == [Answer(500)]
    mirrored = Rule(backends=(g.to("good"),), filters=Filters(mirrors=(Mirror(g.to("web", 443).to),)))
    good = (a.service("good", address="10.1.0.3"), replace(a.workload("good", "10.0.0.3"), uuid=None))
    mesh = g.view(*MESH, *good, BARE, policy, g.http_route("shop", mirrored, parents=(g.at("edge"),)))
    found = action(mesh)
    assert isinstance(found, Forward)
    assert found.mirrors == ()


def test_copies_get_tls_too() -> None:
    """A copy has the same content as its request."""
    mirrored = Rule(backends=(g.to("web", 443),), filters=Filters(mirrors=(Mirror(g.to("web", 443).to),)))
    route = g.http_route("shop", mirrored, parents=(g.at("edge"),))
    found = action(g.view(*MESH, BARE, g.backend_policy(), g.ca_bundle(), route))
    assert isinstance(found, Forward)
    assert [mirror.backend.tls for mirror in found.mirrors] == [TLS.policy]


def test_share_of_a_broken_policy_stays() -> None:
    """The other backends do not get its requests."""
    rule = Rule(backends=(g.to("web", 443), g.to("good")))
    good = (a.service("good", address="10.1.0.3"), replace(a.workload("good", "10.0.0.3"), uuid=None))
    mesh = g.view(*MESH, *good, BARE, g.backend_policy(), g.http_route("shop", rule, parents=(g.at("edge"),)))
    found = action(mesh)
    assert isinstance(found, Forward)
    assert found.shares[0] == AnsweredShare(500, 1)


def test_policies_of_two_ports_with_one_target_are_two_destinations() -> None:
    """BackendTLSPolicyConflictResolution: both ports of the Service lead to one port of the Pods."""
    ports = tuple(
        a.port(number, 8443, Protocol.TCP, name, "name")
        for number, name in ((443, "first"), (8443, "second"))
    )
    backends = (g.to("web", 443), g.to("web", 8443))
    mesh = g.view(
        EDGE,
        g.CLASS,
        g.gateway("edge"),
        a.service("web", *ports, address="10.1.0.2"),
        BARE,
        g.ca_bundle(),
        g.backend_policy("one", "web/first"),
        g.backend_policy("rest", "web"),
        g.http_route("shop", Rule(backends=backends), parents=(g.at("edge"),)),
    )
    found = [(place.target_port, place.tls and place.tls.policy.name) for place in destinations(mesh)]
    assert found == [("8443", "one"), ("8443", "rest")]


def test_provenance_names_policy_and_certificates() -> None:
    """An Envoy that rejects the cluster or the port blames the objects behind it."""
    mesh = view(BARE, g.backend_policy(), g.ca_bundle())
    group = group_of(mesh, EDGE)
    ours = {"BackendTLSPolicy default/tls", "ConfigMap default/ca"}
    assert ours <= {str(item.key) for item in made_from(mesh, group, DestinationPolicy(WEB.key, "8080"))}
    assert ours <= {str(item.key) for item in made_from(mesh, group, GatewayPorts())}


@pytest.mark.parametrize(("policies", "expected"), [((), Answer(500)), ((g.backend_policy(),), None)])
def test_declared_https_needs_a_policy(policies: tuple[object, ...], expected: RouteAction | None) -> None:
    """`appProtocol: https` is not for requests in plain text; with a policy the requests have TLS."""
    port = replace(HTTPS, protocol_source="appProtocol", secure=True)
    service = a.service("web", port, address="10.1.0.2")
    mesh = g.view(EDGE, g.CLASS, g.gateway("edge"), service, BARE, g.ca_bundle(), ROUTE, *policies)
    found = action(mesh)
    assert found == expected if expected is not None else isinstance(found, Forward)


def test_client_certificate_of_the_gateway_is_part_of_the_tls_to_backends() -> None:
    """GatewayTLSBackendClientCertificate; a gateway never gets the key without such a backend."""
    client, shown = g.tls_secret("client"), g.with_client_certificate(g.gateway("edge"))
    mesh = g.view(*MESH[:2], WEB, shown, ROUTE, BARE, g.backend_policy(), g.ca_bundle(), client)
    (place,) = destinations(mesh)
    assert place.tls == replace(TLS, certificate=a.policy_key("client"))
    assert edge_secrets(mesh, group_of(mesh, EDGE)) == (client,)
    plain = g.view(*MESH[:2], WEB, shown, ROUTE, BARE, client)
    assert edge_secrets(plain, group_of(plain, EDGE)) == ()
    (place,) = destinations(view(BARE, g.backend_policy(), g.ca_bundle(), client))
    assert place.tls == TLS
