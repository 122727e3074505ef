"""Tests of outbound policy: services, splits, destinations, and conflicts of listeners."""

from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.destinations import DestinationEndpoint, ServiceDestination
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from catalog.relations.conflicts import conflicts
from catalog.relations.groups import group_of
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.workload import Transparent, WorkloadPort
from tests.meshes import values as a
from tests.meshes.route_entries import entry

ALL = a.route_group("all", a.match("all", ".*"))
ANY = a.tcp_route("any")


def policy(mesh: View, name: str) -> ProxyPolicy:
    """Return the policy of a workload's proxy."""
    workload = next(workload for key, workload in mesh.workloads.items() if key.name == name)
    return proxy_policy(mesh, group_of(mesh, workload))


def backend(name: str, weight: int = 1, target_port: str = "8080") -> WeightedBackend:
    """Make a weighted backend."""
    return WeightedBackend(a.service_key(name), target_port, weight)


def test_client_has_only_the_services_and_endpoints_it_may_call() -> None:
    """Another identity behind the service, endpoints without a sidecar and other services are left out."""
    mesh = a.view(
        a.service("shop", a.port(80), a.port(3306, 3306, a.TCP), address="10.96.0.1"),
        a.service("bank", address="10.96.0.2"),
        a.workload("shop-1", "10.0.0.1", app="shop", account="shop"),
        a.workload("shop-2", "10.0.0.2", app="shop", account="canary"),
        a.workload("shop-3", "10.0.0.3", app="shop", account="shop", sidecar=False),
        a.workload("bank", "10.0.0.4"),
        a.workload("buyer", "10.0.0.9"),
        ALL,
        a.target("t", "buyer", "shop", a.http("all")),
    )
    result = policy(mesh, "buyer")
    assert result.outbound == (
        OutboundService(
            a.service_key("shop"),
            Port(80),
            a.HTTP,
            (entry(backend("shop")),),
            addresses=(IpAddress("10.96.0.1"),),
        ),
    )
    assert result.service_destinations == (
        ServiceDestination(
            a.service_key("shop"),
            "8080",
            True,
            "shop.default.svc.cluster.local",
            (a.identity("shop"),),
            (DestinationEndpoint(IpAddress("10.0.0.1"), Port(8080)),),
            caller=a.identity("buyer"),
        ),
    )
    assert policy(mesh, "bank").outbound == ()


def test_permissive_mode_shows_every_service_of_the_mesh() -> None:
    """Every proxy has all services, its own included, and only endpoints with a sidecar."""
    mesh = a.view(
        MeshConfig(permissive=True),
        a.service("shop"),
        a.service("empty"),
        a.workload("shop", "10.0.0.1"),
        a.workload("bare", "10.0.0.2", app="shop", sidecar=False),
    )
    result = policy(mesh, "shop")
    assert [outbound_service.upstream.name for outbound_service in result.outbound] == ["empty", "shop"]
    assert [service_destination.endpoints for service_destination in result.service_destinations] == [
        (),
        (DestinationEndpoint(IpAddress("10.0.0.1"), Port(8080)),),
    ]
    assert result.service_destinations[0].identities == ()


SPLIT = (
    a.service("shop", a.port(80, name="web"), a.port(90, 9090, a.TCP, "raw"), app="nobody"),
    a.service("v1", a.port(80, name="web"), a.port(90, 9090, a.TCP, "raw")),
    a.service("v2", a.port(81, "main", name="web"), a.port(90, 9090, a.TCP, "raw")),
    a.service("v3"),
    a.workload("v1", "10.0.0.1"),
    a.workload("v2", "10.0.0.2"),
    a.workload("v3", "10.0.0.3"),
    a.workload("buyer", "10.0.0.9"),
    ALL,
    ANY,
    a.route_group("beta", a.match("beta", "/beta.*", headers=(("x-beta", "yes"),))),
    a.target("to-v1", "buyer", "v1", a.http("all"), a.tcp("any")),
    a.target("to-v2", "buyer", "v2", a.http("all"), a.tcp("any")),
)


def table(mesh: View, number: int) -> tuple[RouteEntry, ...]:
    """Return the buyer's route table of the shop."""
    outbound_services = [
        outbound_service
        for outbound_service in policy(mesh, "buyer").outbound
        if outbound_service.upstream == a.service_key("shop")
    ]
    return next(
        (outbound_service.table for outbound_service in outbound_services if outbound_service.port == number),
        (),
    )


def test_apex_without_workloads_is_called_through_its_split() -> None:
    """For HTTP and TCP, backends that the client may call have their shares. Other backends have none."""
    mesh = a.view(*SPLIT, a.split("s", "shop", ("v1", 3), ("v2", 0), ("v3", 5), ("missing", 7)))
    assert table(mesh, 80) == (entry(backend("v1", 3), split=a.policy_key("s")),)
    assert table(mesh, 90) == (
        entry(backend("v1", 3, "9090"), backend("v2", 0, "9090"), split=a.policy_key("s")),
    )


def test_split_without_weight_for_callable_backends_has_no_route() -> None:
    """A proxy would reject a route with a total weight of 0, so there is none."""
    mesh = a.view(*SPLIT, a.split("s", "shop", ("v2", 0), ("v3", 5)))
    assert table(mesh, 90) == ()


def test_split_precedence_is_matches_then_age_then_name() -> None:
    """Splits with matches come first, then the oldest, then by name; the others are overruled."""
    mesh = a.view(
        *SPLIT,
        a.split("b-young", "shop", ("v1", 1), created="2024-01-02T00:00:00Z"),
        a.split("c-old", "shop", ("v1", 2), created="2024-01-01T00:00:00Z"),
        a.split("a-undated", "shop", ("v1", 3)),
        a.split("z-beta", "shop", ("v1", 4), matches=("beta",)),
    )
    (beta,) = http_route_groups(mesh)[a.policy_key("beta")].matches
    assert table(mesh, 80) == (
        entry(backend("v1", 4), split=a.policy_key("z-beta"), match=beta),
        entry(backend("v1", 2), split=a.policy_key("c-old")),
    )
    # At a TCP port sidecars see no requests, so a split with matches has no effect.
    assert [route_entry.chosen_by for route_entry in table(mesh, 90)] == ["split:default/c-old"]


def test_apex_answers_for_itself_if_its_split_is_invalid() -> None:
    """Zero weight, unknown backends, too much weight and unknown match groups make a split invalid."""
    own = (a.service("shop", app="v1"), *SPLIT[1:])
    alone = (entry(backend("shop")),)
    assert table(a.view(*own, a.split("s", "shop", ("v1", 0))), 80) == alone
    assert table(a.view(*own, a.split("s", "shop", ("missing", 1))), 80) == alone
    assert table(a.view(*own, a.split("s", "shop", ("v1", 2**32))), 80) == alone
    assert table(a.view(*own, a.split("s", "shop", ("v1", 1), matches=("unknown",))), 80) == alone


def test_apex_may_be_its_own_backend() -> None:
    """A split does not nest: the apex as backend means its own endpoints."""
    own = (a.service("shop", app="v1"), *SPLIT[1:])
    mesh = a.view(*own, a.split("s", "shop", ("shop", 1), ("v2", 1)), a.split("t", "v2", ("v1", 1)))
    assert table(mesh, 80) == (entry(backend("shop"), split=a.policy_key("s")),)


def test_headless_service_is_called_at_its_endpoints() -> None:
    """Of two services at one address and port, the first name has them, so that no two matches are equal."""
    mesh = a.view(
        a.service("a-nodes", a.port(7000, 7000, a.TCP), app="node", headless=True),
        a.service("b-nodes", a.port(7000, 7000, a.TCP), app="node", headless=True),
        a.workload("node-1", "10.0.0.1", app="node", account="node"),
        a.workload("node-2", "10.0.0.2", app="node", account="node"),
        a.workload("client", "10.0.0.9"),
        ANY,
        a.target("t", "client", "node", a.tcp("any")),
    )
    result = policy(mesh, "client")
    assert [
        (outbound_service.upstream.name, outbound_service.port, outbound_service.addresses)
        for outbound_service in result.outbound
    ] == [("a-nodes", 7000, ("10.0.0.1", "10.0.0.2"))]
    (place,) = result.service_destinations
    assert (place.as_called, place.identities, place.endpoints) == (True, (a.identity("node"),), ())


def test_ports_of_a_headless_service_are_those_of_its_endpoints() -> None:
    """No port is translated on the way to an endpoint, and a named port may have several numbers."""
    mesh = a.view(
        a.service("nodes", a.port(80, "web"), a.port(7000, 7001), app="node", headless=True),
        a.workload("node-1", "10.0.0.1", WorkloadPort(Port(8080), "web"), app="node", account="node"),
        a.workload("node-2", "10.0.0.2", WorkloadPort(Port(8081), "web"), app="node", account="node"),
        a.workload("node-3", "10.0.0.3", WorkloadPort(Port(7001), "web"), app="node", account="node"),
        a.workload("client", "10.0.0.9"),
        ANY,
        a.target("t", "client", "node", a.tcp("any")),
    )
    outbound_services = policy(mesh, "client").outbound
    assert [
        (outbound_service.port, outbound_service.addresses) for outbound_service in outbound_services
    ] == [
        (7001, ("10.0.0.3",)),
        (8080, ("10.0.0.1",)),
        (8081, ("10.0.0.2",)),
    ]


def test_split_of_a_headless_service_balances_only_its_requests() -> None:
    """Other requests go to the endpoint that was called."""
    mesh = a.view(
        a.service("nodes", app="node", headless=True),
        a.service("spare", app="spare"),
        a.workload("node-1", "10.0.0.1", app="node", account="node"),
        a.workload("spare-1", "10.0.0.2", app="spare", account="node"),
        a.workload("client", "10.0.0.9"),
        ALL,
        a.route_group("gets", a.match("get", "/gets")),
        a.split("s", "nodes", ("nodes", 1), ("spare", 1), matches=("gets",)),
        a.target("t", "client", "node", a.http("all")),
    )
    nodes, _ = policy(mesh, "client").outbound
    assert [
        [(weighted_backend.upstream.name, weighted_backend.as_called) for weighted_backend in way.backends]
        for way in nodes.table
    ] == [
        [("nodes", False), ("spare", False)],
        [("nodes", True)],
    ]


def test_ipv6_addresses_are_offered_only_to_proxies_that_capture_ipv6() -> None:
    """A proxy that intercepts only IPv4 has no IPv6 addresses, and no service with only such addresses."""
    mesh = a.view(
        a.service("shop", address="fd00:96::1"),
        a.service("nodes", a.port(7000, 7000, a.TCP), app="shop", headless=True),
        a.workload("shop-1", "10.0.0.1", app="shop", account="shop"),
        a.workload("shop-2", "fd00::2", app="shop", account="shop"),
        a.workload("buyer", "10.0.0.8"),
        a.workload("modern", "10.0.0.9", account="buyer", interception=Transparent(ipv6=True)),
        a.target("t", "buyer", "shop", a.tcp("any")),
        ANY,
    )
    offered = {
        name: {
            (outbound_service.upstream.name, address)
            for outbound_service in policy(mesh, name).outbound
            for address in outbound_service.addresses
        }
        for name in ("buyer", "modern")
    }
    old = {("nodes", "10.0.0.1")}
    assert offered == {"buyer": old, "modern": old | {("nodes", "fd00::2"), ("shop", "fd00:96::1")}}


def test_explicit_interception_offers_upstreams_that_policy_admits() -> None:
    """Inbound ports bind the workload's address. Upstreams without permission or service are left out."""
    mesh = a.view(
        a.service("shop", a.port(80)),
        a.service("bank", a.port(80)),
        a.workload("shop", "127.0.1.1", interception=a.explicit("127.0.2.1")),
        a.workload("bank", "127.0.1.2", interception=a.explicit("127.0.2.2")),
        a.workload(
            "buyer",
            "127.0.1.3",
            interception=a.explicit(
                None,
                ("shop", 80, "127.0.2.3", 8001),
                ("shop", 80, "127.0.2.3", 8002),
                ("bank", 80, "127.0.2.3", 8003),
                ("nobody", 80, "127.0.2.3", 8004),
            ),
        ),
        ALL,
        a.target("t", "buyer", "shop", a.http("all")),
    )
    (shop,) = policy(mesh, "shop").inbound
    assert (shop.listen, shop.application) == (
        SocketAddress(IpAddress("127.0.1.1"), Port(8080)),
        SocketAddress(IpAddress("127.0.2.1"), Port(8080)),
    )
    buyer = policy(mesh, "buyer")
    assert buyer.inbound == ()
    assert [[str(where) for where in outbound_service.listen] for outbound_service in buyer.outbound] == [
        ["127.0.2.3:8001", "127.0.2.3:8002"]
    ]


def conflict_names(mesh: View) -> list[tuple[str, str]]:
    """Return the refused listener and its holder for each conflict."""
    return [
        (str(conflict.refused), str(conflict.holder))
        for key in mesh.workloads
        for conflict in conflicts(mesh, key)
    ]


def test_listener_at_an_address_in_use_is_left_out() -> None:
    """The later workload by name loses the listener; other machines do not matter."""
    shop = a.service("shop", a.port(80))
    mesh = a.view(
        shop,
        a.workload("shop", "127.0.1.1", interception=a.explicit("127.0.2.1")),
        a.workload("a", "127.0.1.2", interception=a.explicit(None, ("shop", 80, "127.0.1.1", 8080))),
        a.workload("b", "127.0.1.3", interception=a.explicit(None, ("shop", 80, "127.0.2.9", 8001))),
        a.workload("c", "127.0.1.4", interception=a.explicit(None, ("shop", 80, "127.0.2.9", 8001))),
        a.workload("d", "10.0.0.1", interception=a.explicit(None, ("shop", 80, "127.0.2.9", 8001))),
        ALL,
        a.target("t", "c", "shop", a.http("all")),
        a.target("u", "d", "shop", a.http("all")),
    )
    assert conflict_names(mesh) == [
        ("outbound 127.0.2.9:8001 of workload default/c", "outbound 127.0.2.9:8001 of workload default/b"),
        ("inbound 127.0.1.1:8080 of workload default/shop", "outbound 127.0.1.1:8080 of workload default/a"),
    ]
    assert policy(mesh, "shop").inbound == ()
    assert policy(mesh, "c").outbound == ()
    assert [str(outbound_service.listen[0]) for outbound_service in policy(mesh, "d").outbound] == [
        "127.0.2.9:8001"
    ]


def test_wildcard_address_conflicts_with_every_address_of_its_machine() -> None:
    """A listener on 0.0.0.0 has the port of every address of its machine."""
    mesh = a.view(
        a.service("shop", a.port(80)),
        a.workload("a", "10.0.0.1", interception=a.explicit(None, ("shop", 80, "0.0.0.0", 8001))),
        a.workload("b", "10.0.0.1", interception=a.explicit(None, ("shop", 80, "10.0.0.1", 8001))),
        a.workload("c", "10.0.0.2", interception=a.explicit(None, ("shop", 80, "127.0.0.1", 8001))),
    )
    assert conflict_names(mesh) == [
        ("outbound 10.0.0.1:8001 of workload default/b", "outbound 0.0.0.0:8001 of workload default/a")
    ]


def test_outbound_service_is_one_value_for_callers_of_the_same_backends() -> None:
    """Two callers of both backends share the value.

    A caller of one backend has another value for the apex.
    """
    mesh = a.view(
        *SPLIT,
        a.split("half", "shop", ("v1", 1), ("v2", 1)),
        a.workload("reader", "10.0.0.10"),
        a.workload("guest", "10.0.0.11"),
        a.target("reader-to-v1", "reader", "v1", a.http("all"), a.tcp("any")),
        a.target("reader-to-v2", "reader", "v2", a.http("all"), a.tcp("any")),
        a.target("guest-to-v1", "guest", "v1", a.http("all"), a.tcp("any")),
    )
    offered = {
        name: {
            (outbound_service.upstream.name, outbound_service.port): outbound_service
            for outbound_service in policy(mesh, name).outbound
        }
        for name in ("buyer", "reader", "guest")
    }
    assert offered["buyer"].keys() == offered["reader"].keys() >= {("shop", 80), ("shop", 90), ("v2", 90)}
    assert all(
        offered["reader"][place] is outbound_service for place, outbound_service in offered["buyer"].items()
    )
    shared = offered["guest"]["shop", Port(80)].table[-1].shares
    assert shared == (backend("v1"),)
    assert offered["guest"]["v1", Port(80)] is offered["buyer"]["v1", Port(80)]
