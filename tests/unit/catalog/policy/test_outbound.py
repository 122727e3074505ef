"""What a client's proxy is told: services, splits, destinations, listeners in dispute."""

from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.destinations import DestinationEndpoint, ServiceDestination
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundRoute, OutboundService, WeightedBackend
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.conflicts import conflicts
from catalog.relations.groups import group_of
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.workload import Transparent, WorkloadPort
from tests.meshes import values as a

ALL = a.route_group("all", a.match("all", ".*"))
ANY = a.tcp_route("any")


def policy(mesh: View, name: str) -> ProxyPolicy:
    """Return the policy of a workload's proxy."""
    found = next(each for key, each in mesh.workloads.items() if key.name == name)
    return proxy_policy(mesh, group_of(mesh, found))


def backend(name: str, weight: int = 1, target_port: str = "8080") -> WeightedBackend:
    """Make a weighted backend."""
    return WeightedBackend(a.service_key(name), target_port, weight)


def test_a_client_sees_what_it_may_call_and_no_more() -> None:
    """One service, one admitted endpoint: another identity behind it and other services are not there."""
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
    found = policy(mesh, "buyer")
    assert found.outbound == (
        OutboundService(
            a.service_key("shop"),
            Port(80),
            a.HTTP,
            (OutboundRoute(None, (backend("shop"),)),),
            addresses=(IpAddress("10.96.0.1"),),
        ),
    )
    assert found.service_destinations == (
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


def test_permissive_mode_shows_every_service() -> None:
    """Everybody sees everything in the mesh, itself included, and only endpoints with a sidecar."""
    mesh = a.view(
        MeshConfig(permissive=True),
        a.service("shop"),
        a.service("empty"),
        a.workload("shop", "10.0.0.1"),
        a.workload("bare", "10.0.0.2", app="shop", sidecar=False),
    )
    found = policy(mesh, "shop")
    assert [each.upstream.name for each in found.outbound] == ["empty", "shop"]
    assert [each.endpoints for each in found.service_destinations] == [
        (),
        (DestinationEndpoint(IpAddress("10.0.0.1"), Port(8080)),),
    ]
    assert found.service_destinations[0].identities == ()


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


def routes(mesh: View, number: int) -> tuple[OutboundRoute, ...]:
    """Return the buyer's routes to the shop."""
    found = [each for each in policy(mesh, "buyer").outbound if each.upstream == a.service_key("shop")]
    return next((each.routes for each in found if each.port == number), ())


def test_an_apex_that_selects_nobody_is_called_through_its_split() -> None:
    """Shares go to backends by port number or name; whom the client may not call has none; TCP as HTTP."""
    mesh = a.view(*SPLIT, a.split("s", "shop", ("v1", 3), ("v2", 0), ("v3", 5), ("missing", 7)))
    assert routes(mesh, 80) == (OutboundRoute(None, (backend("v1", 3),), a.policy_key("s")),)
    assert routes(mesh, 90) == (
        OutboundRoute(None, (backend("v1", 3, "9090"), backend("v2", 0, "9090")), a.policy_key("s")),
    )


def test_a_split_whose_callable_backends_have_no_weight_reaches_nobody() -> None:
    """Where those that the client may call have no weight, a proxy would refuse the route: none is sent."""
    mesh = a.view(*SPLIT, a.split("s", "shop", ("v2", 0), ("v3", 5)))
    assert routes(mesh, 90) == ()


def test_precedence_of_splits() -> None:
    """With matches before without, the oldest first, then by name; the rest is overruled."""
    mesh = a.view(
        *SPLIT,
        a.split("b-young", "shop", ("v1", 1), created="2024-01-02T00:00:00Z"),
        a.split("c-old", "shop", ("v1", 2), created="2024-01-01T00:00:00Z"),
        a.split("a-undated", "shop", ("v1", 3)),
        a.split("z-beta", "shop", ("v1", 4), matches=("beta",)),
    )
    beta = http_route_groups(mesh)[a.policy_key("beta")].matches
    assert routes(mesh, 80) == (
        OutboundRoute(beta, (backend("v1", 4),), a.policy_key("z-beta")),
        OutboundRoute(None, (backend("v1", 2),), a.policy_key("c-old")),
    )
    # Where no requests are seen, matches cannot hold.
    assert [each.split for each in routes(mesh, 90)] == [a.policy_key("c-old")]


def test_refused_splits_leave_the_apex_to_itself() -> None:
    """All zero, too heavy, unknown match groups: the apex, which selects pods here, answers as without."""
    own = (a.service("shop", app="v1"), *SPLIT[1:])
    alone = (OutboundRoute(None, (backend("shop"),)),)
    assert routes(a.view(*own, a.split("s", "shop", ("v1", 0))), 80) == alone
    assert routes(a.view(*own, a.split("s", "shop", ("missing", 1))), 80) == alone
    assert routes(a.view(*own, a.split("s", "shop", ("v1", 2**32))), 80) == alone
    assert routes(a.view(*own, a.split("s", "shop", ("v1", 1), matches=("unknown",))), 80) == alone


def test_an_apex_may_be_its_own_backend() -> None:
    """A split does not nest: the apex as backend means its own endpoints."""
    own = (a.service("shop", app="v1"), *SPLIT[1:])
    mesh = a.view(*own, a.split("s", "shop", ("shop", 1), ("v2", 1)), a.split("t", "v2", ("v1", 1)))
    shares = (backend("shop"),)
    assert routes(mesh, 80) == (OutboundRoute(None, shares, a.policy_key("s")),)


def test_headless_services_are_called_at_their_endpoints() -> None:
    """Of two services at one address and port the first by name has it, so that no two matches are equal."""
    mesh = a.view(
        a.service("a-nodes", a.port(7000, 7000, a.TCP), app="node", headless=True),
        a.service("b-nodes", a.port(7000, 7000, a.TCP), app="node", headless=True),
        a.workload("node-1", "10.0.0.1", app="node", account="node"),
        a.workload("node-2", "10.0.0.2", app="node", account="node"),
        a.workload("client", "10.0.0.9"),
        ANY,
        a.target("t", "client", "node", a.tcp("any")),
    )
    found = policy(mesh, "client")
    assert [(each.upstream.name, each.port, each.addresses) for each in found.outbound] == [
        ("a-nodes", 7000, ("10.0.0.1", "10.0.0.2"))
    ]
    (place,) = found.service_destinations
    assert (place.as_called, place.identities, place.endpoints) == (True, (a.identity("node"),), ())


def test_the_ports_of_a_headless_service_are_its_endpoints() -> None:
    """Nothing translates ports on the way to an endpoint; where a port has a name, numbers may differ."""
    mesh = a.view(
        a.service("nodes", a.port(80, "web"), a.port(7000, 7001), app="node", headless=True),
        a.workload("node-1", "10.0.0.1", WorkloadPort(Port(8080), "web"), app="node", account="node"),
        a.workload("node-2", "10.0.0.2", WorkloadPort(Port(8081), "web"), app="node", account="node"),
        a.workload("node-3", "10.0.0.3", WorkloadPort(Port(7001), "web"), app="node", account="node"),
        a.workload("client", "10.0.0.9"),
        ANY,
        a.target("t", "client", "node", a.tcp("any")),
    )
    found = policy(mesh, "client").outbound
    assert [(each.port, each.addresses) for each in found] == [
        (7001, ("10.0.0.3",)),
        (8080, ("10.0.0.1",)),
        (8081, ("10.0.0.2",)),
    ]


def test_a_split_says_who_answers_for_a_headless_service() -> None:
    """Its backends are balanced as ever; what the split is not for goes to the endpoint that was called."""
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
    assert [[(each.upstream.name, each.as_called) for each in way.backends] for way in nodes.routes] == [
        [("nodes", False), ("spare", False)],
        [("nodes", True)],
    ]


def test_services_are_called_at_ipv6_addresses_where_the_rules_capture_it() -> None:
    """Whose rules lead IPv4 alone is offered no IPv6 address, and no service that has no other."""
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
            (each.upstream.name, address)
            for each in policy(mesh, name).outbound
            for address in each.addresses
        }
        for name in ("buyer", "modern")
    }
    old = {("nodes", "10.0.0.1")}
    assert offered == {"buyer": old, "modern": old | {("nodes", "fd00::2"), ("shop", "fd00:96::1")}}


def test_explicit_interception_offers_upstreams_that_policy_admits() -> None:
    """Inbound ports bind the workload's address; upstreams without permission or service are not there."""
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
    assert [[str(where) for where in each.listen] for each in buyer.outbound] == [
        ["127.0.2.3:8001", "127.0.2.3:8002"]
    ]


def conflict_names(mesh: View) -> list[tuple[str, str]]:
    """Return who loses to whom."""
    return [(str(each.refused), str(each.holder)) for key in mesh.workloads for each in conflicts(mesh, key)]


def test_listeners_that_would_share_an_address_are_left_out() -> None:
    """The later by workload loses and its policy lacks the listener; other machines do not matter."""
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
    assert [str(each.listen[0]) for each in policy(mesh, "d").outbound] == ["127.0.2.9:8001"]


def test_all_addresses_meet_every_address() -> None:
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


def test_what_a_service_offers_is_derived_once_for_all_who_reach_the_same_behind_it() -> None:
    """The very same value for two callers of a split's both backends; another for who reaches one alone."""
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
        name: {(each.upstream.name, each.port): each for each in policy(mesh, name).outbound}
        for name in ("buyer", "reader", "guest")
    }
    assert offered["buyer"].keys() == offered["reader"].keys() >= {("shop", 80), ("shop", 90), ("v2", 90)}
    assert all(offered["reader"][place] is each for place, each in offered["buyer"].items())
    shared = offered["guest"]["shop", Port(80)].routes[-1].backends
    assert shared == (backend("v1"),)
    assert offered["guest"]["v1", Port(80)] is offered["buyer"]["v1", Port(80)]
