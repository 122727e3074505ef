"""Tests of Egresses in policy: how they unite, and what belongs to the mesh."""

from dataclasses import replace

import pytest

from catalog.policy.exclusions import without
from catalog.policy.group_policy import proxy_policy
from catalog.policy.units import units
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outside import OutsideHost, OutsidePort, OutsideRange, OutsideRoute
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import group_of
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import IpAddress, Namespace, Port
from meshwright.mesh.policies.egress import Egress
from meshwright.mesh.policies.limits import ConnectionLimits, UpstreamTrafficSetting
from meshwright.mesh.service import ExternalHost, Protocol
from tests.meshes import values as a
from tests.meshes.resources import resources

BUYER = a.workload("buyer", "10.0.0.9")
OTHER = a.workload("other", "10.0.0.8")
GET = a.match("get", "/books")
PUT = a.match("put", "/albums")
GROUPS = (a.route_group("books", GET), a.route_group("albums", PUT))
ELSEWHERE = OutsideHost("*", (OutsideRoute(None),))


def policy(mesh: View, name: str = "buyer") -> ProxyPolicy:
    """Return the policy of a workload's proxy."""
    workload = next(workload for key, workload in mesh.workloads.items() if key.name == name)
    return proxy_policy(mesh, group_of(mesh, workload))


def ranges(*things: object, port: int = 80) -> tuple[OutsideRange, ...]:
    """Return the ranges that the buyer may call at a port."""
    result = [
        outside_port.ranges
        for outside_port in policy(a.view(BUYER, *GROUPS, *things)).outside
        if outside_port.port == port
    ]
    return result[0] if result else ()


def by_dns(name: str, *matches: object) -> OutsideHost:
    """Make a host at the address in the DNS, for all requests or for those that fit."""
    return OutsideHost(name, (OutsideRoute(tuple(matches) or None, ExternalHost(name)),))  # type: ignore[arg-type]


def as_called(name: str) -> OutsideHost:
    """Make a host whose requests go to their original address."""
    return OutsideHost(name, (OutsideRoute(None),))


def web(name: str = "web", *hosts: str, groups: tuple[str, ...] = (), **more: object) -> Egress:
    """Make an Egress of HTTP at port 80."""
    return replace(a.egress(name, "buyer", (80, "http"), hosts=hosts, groups=groups), **more)  # type: ignore[arg-type]


def test_egress_lets_only_its_sources_out() -> None:
    """The Egress may be in any namespace, as in OSM."""
    mesh = a.view(BUYER, OTHER, web("web", "x.test"))
    assert policy(mesh).outside == (
        OutsidePort(Port(80), (OutsideRange(hosts=(by_dns("x.test"),)),), by=(a.policy_key("web"),)),
    )
    assert policy(mesh, "other").outside == ()
    elsewhere = replace(web("web", "x.test"), key=a.policy_key("web", "platform"))
    assert policy(a.view(BUYER, elsewhere)).outside[0].by == (a.policy_key("web", "platform"),)


def test_egresses_of_one_host_unite_with_their_matches() -> None:
    """An Egress without matches admits all requests.

    A missing group admits none, and the host stays named.
    """
    books, albums = web("a", "x.test", groups=("books",)), web("b", "x.test", "y.test", groups=("albums",))
    both = OutsideHost("x.test", (OutsideRoute((GET, PUT), ExternalHost("x.test")),))
    assert ranges(books, albums) == (OutsideRange(hosts=(both, by_dns("y.test", PUT))),)
    assert ranges(books, web("b", "x.test")) == (OutsideRange(hosts=(by_dns("x.test"),)),)
    assert ranges(web("a", "x.test", groups=("gone",))) == (OutsideRange(hosts=(OutsideHost("x.test", ()),)),)
    assert ranges(web("a", "x.test", groups=("books", "gone"))) == (
        OutsideRange(hosts=(by_dns("x.test", GET),)),
    )


def test_wildcard_needs_ranges_and_is_merged_into_names_below_it() -> None:
    """Envoy uses only the host with the longest name, so that host includes the rules of each wildcard."""
    inside = ("192.0.2.0/24",)
    assert ranges(web("a", "*.x.test")) == ()
    (outside_range,) = ranges(web("a", "*.x.test", networks=inside))
    assert outside_range == OutsideRange(inside, hosts=(as_called("*.x.test"),))
    everywhere, narrow = ranges(
        web("a", "*.x.test", networks=inside), web("b", "b.x.test", "c.test", groups=("books",))
    )
    assert everywhere == OutsideRange(hosts=(by_dns("b.x.test", GET), by_dns("c.test", GET)))
    assert narrow == OutsideRange(
        inside, hosts=(as_called("*.x.test"), as_called("b.x.test"), by_dns("c.test", GET))
    )


def test_egress_without_hosts_admits_all_hosts_within_its_ranges() -> None:
    """HTTP goes to addresses that the Egress names, because a client can forge a Host header."""
    assert ranges(web("a")) == ()
    assert ranges(web("a", networks=("192.0.2.0/24",))) == (
        OutsideRange(("192.0.2.0/24",), hosts=(as_called("*"),)),
    )


def test_narrower_range_includes_what_wider_ranges_admit() -> None:
    """This holds over three levels and both families; ranges with equal rules are merged, in order."""
    outside_ranges = ranges(
        a.egress("a", "buyer", (443, "https"), hosts=("a.test",)),
        a.egress("b", "buyer", (443, "https"), hosts=("b.test",), networks=("10.0.0.0/8", "fd00::/8")),
        a.egress("c", "buyer", (443, "https"), hosts=("c.test",), networks=("10.1.0.0/16",)),
        a.egress("d", "buyer", (443, "tcp"), networks=("10.1.1.0/24",)),
        port=443,
    )
    assert outside_ranges == (
        OutsideRange(server_names=("a.test",)),
        OutsideRange(("10.0.0.0/8", "fd00::/8"), server_names=("a.test", "b.test")),
        OutsideRange(("10.1.0.0/16",), server_names=("a.test", "b.test", "c.test")),
        OutsideRange(("10.1.1.0/24",), connections=True),
    )


def test_https_without_hosts_admits_every_server_name() -> None:
    """Another Egress with a name adds nothing to that."""
    named = a.egress("b", "buyer", (443, "https"), hosts=("a.test",))
    assert ranges(a.egress("a", "buyer", (443, "https")), named, port=443) == (
        OutsideRange(server_names=("*",)),
    )


SHOP = (a.service("shop", address="10.96.0.1"), a.workload("shop", "10.0.0.1"))
CALLS = a.target("t", "buyer", "shop", a.http("books"))


@pytest.mark.parametrize(
    "host",
    [
        "shop.default",
        "shop.default.svc",
        "shop.default.svc.cluster.local",
        "shop",
        "shop-0.shop.default.svc.cluster.local",
        "10.96.0.1",
    ],
)
def test_host_of_the_mesh_is_ignored_in_an_egress(host: str) -> None:
    """A Service is recognised by each of its names and its address.

    The same name below another domain is outside the mesh.
    """
    assert ranges(web("a", host, "x.test"), *SHOP) == (OutsideRange(hosts=(by_dns("x.test"),)),)
    assert ranges(web("a", host)) == (OutsideRange(hosts=(by_dns(host),)),)
    assert ranges(web("a", f"{host}.test"), *SHOP) == (OutsideRange(hosts=(by_dns(f"{host}.test"),)),)
    https = a.egress("b", "buyer", (443, "https"), hosts=(host,))
    assert ranges(https, *SHOP, port=443) == ()


def few(name: str, host: str, connections: int, created: str = "") -> UpstreamTrafficSetting:
    """Make a setting for a host."""
    limits = ConnectionLimits(connections=connections)
    return UpstreamTrafficSetting(a.policy_key(name), host, limits, created=created)


def test_limits_apply_only_to_the_host_of_their_setting() -> None:
    """Of two Egresses for a host, the one with the older setting decides.

    With ranges, the setting has no effect.
    """
    one = a.egress("a", "buyer", (80, "http"), hosts=("x.test", "y.test"), limits="one")
    two = a.egress("b", "buyer", (80, "http"), hosts=("x.test",), limits="two")
    settings = (few("one", "x.test", 1), few("two", "x.test", 2, "2026-01-01T00:00:00Z"))
    unlimited = ConnectionLimits()

    def limits(*things: object) -> dict[str, ConnectionLimits]:
        (port,) = policy(a.view(BUYER, *things)).outside
        return {
            host.name: route.limits
            for outside_range in port.ranges
            for host in outside_range.hosts
            for route in host.routes
        }

    assert limits(one, settings[0]) == {"x.test": settings[0].connections, "y.test": unlimited}
    assert limits(one, two, *settings) == {"x.test": settings[1].connections, "y.test": unlimited}
    assert limits(one) == {"x.test": unlimited, "y.test": unlimited}
    bound = a.egress("a", "buyer", (80, "http"), hosts=("x.test",), networks=("192.0.2.0/24",), limits="one")
    assert limits(bound, settings[0]) == {"x.test": unlimited}


def test_limits_change_only_the_cluster_of_their_host() -> None:
    """Listener and routes stay the same."""
    egress = a.egress("a", "buyer", (80, "http"), hosts=("x.test",), limits="one")
    made = [
        {
            (resource.type_url, resource.name): resource.version
            for resource in resources(policy(a.view(BUYER, egress, *more)))
        }
        for more in ((), (few("one", "x.test", 1),))
    ]
    changed = {key for key in made[0] if made[0][key] != made[1][key]}
    assert {name for _, name in changed} == {"x.test:80"}
    assert made[0].keys() == made[1].keys()


@pytest.mark.parametrize("allowed", [True, False])
def test_address_of_the_mesh_is_ignored_in_an_egress(allowed: bool) -> None:
    """This holds at the ports of the Service only. A Service that the client may not call is closed there."""
    shop = a.service("shop", a.port(80), a.port(443), address="10.96.0.1")
    tcp = a.egress("a", "buyer", (80, "tcp"), (81, "tcp"), networks=("10.96.0.0/16", "10.96.0.1/32"))
    things = (shop, a.workload("shop", "10.0.0.1"), tcp, *((CALLS,) if allowed else ()))
    mesh = a.view(BUYER, *GROUPS, *things)
    wide, exact = OutsideRange(("10.96.0.0/16",), connections=True), ("10.96.0.0/16", "10.96.0.1/32")
    assert [outside_port.ranges for outside_port in policy(mesh).outside] == [
        (wide,),
        (replace(wide, networks=exact),),
    ]
    closed = () if allowed else (SocketAddress(IpAddress("10.96.0.1"), Port(80)),)
    assert policy(mesh).closed == closed
    mesh.apply(Edits({a.object_key(tcp): None}))
    assert (policy(mesh).outside, policy(mesh).closed) == ((), ())


def test_port_where_a_server_speaks_first_has_no_server_names() -> None:
    """Sidecars cannot wait for the client's first bytes there.

    The reason may be another Egress or a service that the client may call.
    """
    spoken = (3306, "https"), (3306, "http"), (3306, "tcp-server-first")
    own = a.egress("a", "buyer", *spoken[:2], hosts=("x.test",))
    first = a.egress("b", "buyer", spoken[2], networks=("192.0.2.0/24",))
    whole = OutsideRange(server_names=("x.test",), hosts=(by_dns("x.test"),))
    without = replace(whole, server_names=())
    assert ranges(own, port=3306) == (whole,)
    assert ranges(own, first, port=3306) == (without, OutsideRange(("192.0.2.0/24",), connections=True))
    db = (
        a.service("db", a.port(3306, 3306, Protocol.TCP_SERVER_FIRST)),
        a.workload("db", "10.0.0.2"),
        a.tcp_route("any"),
    )
    assert ranges(own, *db, port=3306) == (whole,)
    assert ranges(own, *db, a.target("t", "buyer", "db", a.tcp("any")), port=3306) == (without,)


def test_passthrough_lets_calls_without_an_egress_pass() -> None:
    """HTTP is detected at a port with hosts; at a server-first port it is not."""
    config = MeshConfig(egress=True)
    (port,) = policy(a.view(BUYER, *GROUPS, config, web("a", "x.test", groups=("books",)))).outside
    hosts = (by_dns("x.test", GET), ELSEWHERE)
    assert (port.ranges, port.told_apart) == ((OutsideRange(hosts=hosts),), True)
    every = web("b", networks=("192.0.2.0/24",))
    (port,) = policy(a.view(BUYER, config, every)).outside
    assert [outside_range.hosts for outside_range in port.ranges] == [(as_called("*"),)]
    first = a.egress("c", "buyer", (80, "tcp-server-first"), networks=("192.0.2.0/24",))
    (port,) = policy(a.view(BUYER, config, first, web("a", "x.test"))).outside
    assert (port.ranges, port.told_apart) == ((OutsideRange(("192.0.2.0/24",), connections=True),), False)


def test_explicit_interception_has_no_egress() -> None:
    """Only upstreams pass through the sidecar, so policy has nothing for other calls."""
    buyer = a.workload("buyer", "10.0.0.9", interception=a.explicit(None))
    mesh = a.view(buyer, web("a", "x.test"), a.service("shop", address="10.96.0.1"))
    assert (policy(mesh).outside, policy(mesh).closed) == ((), ())


def test_bare_host_name_is_a_service_only_in_the_clients_namespace() -> None:
    """`shop` is a Service in its own namespace and a host in others."""
    there = replace(a.service("shop"), key=a.service_key("shop", "bank"))
    assert there.key.namespace == Namespace("bank")
    assert ranges(web("a", "shop"), there) == (OutsideRange(hosts=(by_dns("shop"),)),)


def test_excluded_match_of_an_egress_admits_nothing() -> None:
    """Requests that only this match admits are refused, and the host stays named."""
    result = policy(a.view(BUYER, *GROUPS, web("a", "x.test", groups=("books", "albums"))))
    assert {GET, PUT} <= set(units(result))
    (port,) = without(result, {GET}).outside
    assert port.ranges == (OutsideRange(hosts=(by_dns("x.test", PUT),)),)
    (port,) = without(result, {GET, PUT}).outside
    assert port.ranges == (OutsideRange(hosts=(OutsideHost("x.test", ()),)),)
