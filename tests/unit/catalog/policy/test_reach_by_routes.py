"""Tests of the reach of Gateway API routes: which callers see which places behind a Service."""

from dataclasses import replace

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.policy.outbound import visible
from catalog.policy.route_table import places_behind, table
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.route_actions import Answer
from catalog.relations.groups import members
from catalog.relations.membership import belongs_to_the_mesh
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Filters, Redirect
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import TCPRoute, TrafficTarget
from meshwright.mesh.service import ServiceKey
from tests.meshes import gateway as g
from tests.meshes import values as a

ECHO = a.service("echo", a.port(80, 8080), a.port(81, 8080), address="10.1.0.1")
ECHO_POD = a.workload("echo", "10.0.0.1")
V1, V1_POD = a.service("v1", a.port(80, 8080), address="10.1.0.2"), a.workload("v1", "10.0.0.2")
FAR = a.service("far", a.port(80, 8080), address="10.1.0.3", namespace="shop")
FAR_POD = a.workload("far", "10.0.0.3", namespace="shop")
CLIENT, OTHER = a.workload("client", "10.0.0.8"), a.workload("other", "10.0.0.9", namespace="shop")
MESH = (ECHO, ECHO_POD, V1, V1_POD, FAR, FAR_POD, CLIENT, OTHER)
OPEN = MeshConfig(permissive=True)
AT_80 = (g.parent("echo", namespace="default", port=80),)
PRODUCER = g.http_route("producer", Rule(backends=(g.to("v1"),)), parents=AT_80)
CONSUMER = g.http_route(
    "consumer", Rule(backends=(g.to("far", namespace="shop"),)), parents=AT_80, namespace="shop"
)
TO_FAR = g.http_route("to-far", Rule(backends=(g.to("far", namespace="shop"),)), parents=AT_80)


def shares(mesh: View, client: ServiceIdentity, number: int = 80) -> list[list[str]]:
    """Return the backends of each entry of the client's table at a port of `echo`."""
    port = mesh.services[ECHO.key].port(number)
    assert port is not None
    return [
        [str(share.upstream) for share in entry.backends] for entry in table(mesh, client, ECHO.key, port)
    ]


def configured(mesh: View, client: ServiceIdentity) -> dict[int, list[list[str]]]:
    """Return the same from the client's whole policy, by port; without ports that it may not call."""
    (group,) = (key for key in members(mesh) if key.identity == client)
    return {
        service.port: [[str(share.upstream) for share in entry.backends] for entry in service.table]
        for service in proxy_policy(mesh, group).outbound
        if service.upstream == ECHO.key
    }


@pytest.mark.parametrize(
    ("routes", "here", "there"),
    [
        ((), "default/echo", "default/echo"),
        ((PRODUCER,), "default/v1", "default/v1"),
        ((CONSUMER,), "default/echo", "shop/far"),
        ((PRODUCER, CONSUMER), "default/v1", "shop/far"),
        ((TO_FAR,), "shop/far", "shop/far"),
    ],
)
def test_consumer_routes_precede_producer_routes_and_these_the_service_itself(
    routes: tuple[object, ...], here: str, there: str
) -> None:
    """At another port the Service itself answers, in the table and in the whole policy of each caller."""
    mesh = g.view(*MESH, OPEN, *routes)
    for client, expected in ((CLIENT.identity, here), (OTHER.identity, there)):
        assert shares(mesh, client) == [[expected]]
        assert shares(mesh, client, 81) == [["default/echo"]]
        assert configured(mesh, client) == {80: [[expected]], 81: [["default/echo"]]}


def test_clients_without_consumer_routes_share_one_part() -> None:
    """A consumer route gives its namespace a part of its own, and leaves the common part to the others."""
    mesh = g.view(*MESH, OPEN, CONSUMER)
    parts = {
        key.identity.namespace: [part.common for part in proxy_policy(mesh, key).reachable]
        for key in members(mesh)
    }
    assert parts == {"default": [True], "shop": [False]}


def test_endpoints_of_a_backend_in_another_namespace_follow() -> None:
    """The destination of a backend has the endpoints and identities of its Service."""
    mesh = g.view(*MESH, OPEN, TO_FAR)
    (group,) = (key for key in members(mesh) if key.identity == CLIENT.identity)
    (destination,) = (
        item
        for part in proxy_policy(mesh, group).reachable
        for item in part.destinations
        if isinstance(item, ServiceDestination) and item.service == FAR.key
    )
    assert destination.identities == (FAR_POD.identity,)
    assert [endpoint.address for endpoint in destination.endpoints] == [FAR_POD.address]


def test_a_strict_service_is_visible_by_a_permitted_backend() -> None:
    """TrafficTargets for a backend make the parent visible, as for the apex of a TrafficSplit."""
    target = (a.target("t", "client", "v1", a.tcp("all")), a.tcp_route("all"))
    assert ECHO.key not in visible(g.view(*MESH, *target), CLIENT.identity)
    mesh = g.view(*MESH, *target, PRODUCER)
    assert ECHO.key in visible(mesh, CLIENT.identity)
    assert configured(mesh, CLIENT.identity) == {80: [["default/v1"]]}
    assert configured(mesh, OTHER.identity) == {}


@pytest.mark.parametrize(("open_namespace", "visible_there"), [("shop", True), ("bank", False)])
def test_a_strict_service_with_a_permissive_backend_is_visible_to_all(
    open_namespace: str, visible_there: bool
) -> None:
    """Whoever may call a backend sees the Service, with or without a TrafficTarget."""
    mesh = g.view(*MESH, a.namespace(open_namespace, permissive=True), TO_FAR)
    for client in (CLIENT.identity, OTHER.identity):
        assert configured(mesh, client) == ({80: [["shop/far"]]} if visible_there else {})


def test_a_permissive_service_with_a_strict_backend_differs_between_clients() -> None:
    """The backend is a share for its permitted client alone; others do not get it in a common part."""
    target = _in_shop(a.target("t", "client", "far", a.tcp("all")))
    all_ports = _in_shop(a.tcp_route("all"))
    mesh = g.view(*MESH, a.namespace("default", permissive=True), TO_FAR, target, all_ports)
    assert configured(mesh, CLIENT.identity) == {80: [["shop/far"]], 81: [["default/echo"]]}
    assert configured(mesh, OTHER.identity)[81] == [["default/echo"]]
    assert configured(mesh, OTHER.identity)[80] != [["shop/far"]]


def test_a_redirect_of_a_strict_service_is_seen_by_all() -> None:
    """A redirect calls nobody, so it needs no permission; the rest of the table is denied."""
    redirect = Rule((g.prefix("/old"),), Filters(redirect=Redirect()))
    route = g.http_route("r", redirect, Rule(backends=(g.to("v1"),)), parents=AT_80)
    mesh = g.view(*MESH, route)
    for client in (CLIENT.identity, OTHER.identity):
        (group,) = (key for key in members(mesh) if key.identity == client)
        (service,) = proxy_policy(mesh, group).outbound
        assert [entry.action for entry in service.table] == [Redirect(port=Port(80)), Answer(403)]


def test_places_behind_are_those_of_the_deciding_routes() -> None:
    """The places of each side are its routes' places, with those of the other ports."""
    mesh = g.view(*MESH, PRODUCER, CONSUMER)
    own = {(ECHO.key, port) for port in ECHO.ports}
    assert {*places_behind(mesh, ECHO.key, None)} == {*own, (V1.key, V1.ports[0])}
    assert {*places_behind(mesh, ECHO.key, Namespace("shop"))} == {*own, (FAR.key, FAR.ports[0])}


@pytest.mark.parametrize(("route", "member"), [(PRODUCER, True), (CONSUMER, False)])
def test_a_producer_route_makes_a_service_a_member_of_the_mesh(route: object, member: bool) -> None:
    """A Service without sidecars is outside otherwise; a consumer cannot change that for others."""
    outside = a.workload("echo", "10.0.0.1", sidecar=False)
    mesh = g.view(ECHO, outside, V1, V1_POD, FAR, FAR_POD, route)
    assert belongs_to_the_mesh(mesh, ServiceKey(ECHO.key.namespace, ECHO.key.name)) is member


def _in_shop(thing: object) -> object:
    """Return a policy object in the namespace `shop`, with its destination there."""
    assert isinstance(thing, TrafficTarget | TCPRoute)
    key = replace(thing.key, namespace=Namespace("shop"))
    if isinstance(thing, TCPRoute):
        return replace(thing, key=key)
    return replace(thing, key=key, destination=FAR_POD.identity)
