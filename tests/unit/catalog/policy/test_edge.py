"""Ports of a gateway's proxies: whole values, and who decides about a host name."""

from dataclasses import replace
from http import HTTPStatus

from catalog.policy.edge import edge_authorities, edge_ports, edge_secrets
from catalog.policy.exclusions import without
from catalog.policy.group_policy import proxy_policy
from catalog.policy.provenance import made_from
from catalog.policy.units import units
from catalog.policy.values.edge import EdgeAuthorities, EdgeChain, EdgeHost, EdgePort, EdgeTls
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.parts import GatewayPorts
from catalog.policy.values.route_actions import Answer, AnsweredShare, Forward, HttpVersion, WeightedBackend
from catalog.policy.values.route_table import AppliedRoute, RouteEntry, RouteSource
from catalog.relations.groups import group_of
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.gateways import Listener, ValidationMode
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.gateway.rules import Backend, Rule
from meshwright.mesh.kinds import CONFIG_MAP, GATEWAY_TCP_ROUTE, HTTP_ROUTE, TLS_ROUTE
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import Protocol
from meshwright.mesh.values.private_key import PrivateKey
from meshwright.mesh.workload import Edge, WorkloadKey
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.lint.test_growth import Calls

EDGE = replace(a.workload("edge", "10.0.0.9"), interception=Edge("edge"))
V1, V2 = a.service("v1", address="10.1.0.2"), a.service("v2", address="10.1.0.3")
OPEN = MeshConfig(permissive=True)
TO_V1 = Rule(backends=(g.to("v1"),))
MESH = (V1, V2, a.workload("v1", "10.0.0.2"), a.workload("v2", "10.0.0.3"), EDGE, g.CLASS)


def ports(*things: object, open_mesh: bool = True) -> tuple[EdgePort, ...]:
    """Return the ports of the gateway's proxy in a mesh with these objects."""
    return _ports(g.view(*MESH, *((OPEN,) if open_mesh else ()), *things))


def _ports(view: View) -> tuple[EdgePort, ...]:
    return edge_ports(view, group_of(view, EDGE))


def hosts(port: EdgePort) -> tuple[EdgeHost, ...]:
    """Return the host names of a port that has one filter chain, for requests."""
    (chain,) = port.chains
    assert chain.hosts is not None
    return chain.hosts


def route(
    name: str, backend: str, *hostnames: str, section: str | None = None, created: str = ""
) -> GatewayRoute:
    """Make a route for all requests to one backend."""
    rule = Rule(backends=(g.to(backend),))
    return g.http_route(name, rule, parents=(g.at("edge", section),), hostnames=hostnames, created=created)


def answers(*things: object) -> dict[str, list[str]]:
    """Return the names of the routes behind each host name at the one port, in their order."""
    (port,) = ports(*things)
    return {host.hostname: [entry.provenance[0].part.by.name for entry in host.table] for host in hosts(port)}


def listeners(*hostnames: str) -> tuple[Listener, ...]:
    """Make listeners at port 80, each with the name of its host."""
    return tuple(g.listener(hostname or "all", 80, hostname) for hostname in hostnames)


def test_port_has_a_table_for_each_host_name() -> None:
    """The whole value of one listener with one route."""
    shop = g.http_route(
        "shop", Rule(backends=(g.to("v1"),)), parents=(g.at("edge"),), hostnames=("shop.example",)
    )
    entry = RouteEntry(
        shop.rules[0].matches,
        Forward((WeightedBackend(V1.key, "8080", 1, version=HttpVersion.HTTP1),)),
        (RouteSource(AppliedRoute(HTTP_ROUTE, shop.key, 0, shop.rules[0], 0)),),
    )
    assert ports(g.gateway("edge"), shop) == (
        EdgePort(
            a.policy_key("edge"),
            Port(80),
            (EdgeChain(hosts=(EdgeHost("", ()), EdgeHost("shop.example", (entry,)))),),
            (SocketAddress(IpAddress("10.0.0.9"), Port(80)),),
        ),
    )


def test_wider_route_is_in_the_host_of_a_narrower_one_after_it() -> None:
    """Envoy looks into one virtual host, so what the narrower route lacks is looked up in the same list."""
    wide, exact = route("wide", "v1", "*.example"), route("exact", "v2", "shop.example")
    assert answers(g.gateway("edge"), wide, exact, route("any", "v1")) == {
        "": ["any"],
        "*.example": ["wide", "any"],
        "shop.example": ["exact", "wide", "any"],
    }


def test_own_host_name_of_a_route_decides_and_not_what_the_listener_leaves_of_it() -> None:
    """HTTPRouteMultipleRoutesAttachmentSameHostnameIntersection: the listener narrows both to one host."""
    old = route("wide", "v1", "*.example", created="2026-01-01T00:00:00Z")
    young = route("exact", "v2", "shop.example", created="2026-02-01T00:00:00Z")
    gateway = g.gateway("edge", g.listener(hostname="shop.example"))
    assert answers(gateway, old, young) == {"shop.example": ["exact", "wide"]}


def test_only_the_most_specific_listener_answers() -> None:
    """GatewayHTTPListenerIsolation: four listeners from any host to an exact one, each with its route."""
    names = ("", "*.example.com", "*.foo.example.com", "abc.foo.example.com")
    each = [route(f"for-{index}", "v1", section=name or "all") for index, name in enumerate(names)]
    assert answers(g.gateway("edge", *listeners(*names)), *each) == {
        "": ["for-0"],
        "*.example.com": ["for-1"],
        "*.foo.example.com": ["for-2"],
        "abc.foo.example.com": ["for-3"],
    }


def test_listener_without_routes_keeps_its_names_from_wider_listeners() -> None:
    """The answer is 404, and not that of the route at the listener for all hosts."""
    gateway = g.gateway("edge", *listeners("", "shop.example"))
    assert answers(
        gateway, route("any", "v1", section="all"), route("wide", "v1", "*.example", section="all")
    ) == {
        "": ["any"],
        "*.example": ["wide", "any"],
        "shop.example": [],
    }


def test_route_of_a_wider_listener_has_no_names_of_a_narrower_one() -> None:
    """The name is the narrower listener's, to which the route is not attached."""
    gateway = g.gateway("edge", *listeners("*.example", "*.shop.example"))
    assert answers(gateway, route("cart", "v1", "cart.shop.example", section="*.example")) == {
        "*.example": [],
        "*.shop.example": [],
    }


def test_gateway_may_call_what_targets_admit() -> None:
    """In a strict mesh the gateway's identity needs a TrafficTarget; other backends answer 403."""
    both = Rule(backends=(g.to("v1"), g.to("v2")))
    split = g.http_route("split", both, parents=(g.at("edge"),))
    admitted = a.target("to-v1", "edge", "v1", a.tcp("all"))
    (port,) = ports(g.gateway("edge"), split, admitted, a.tcp_route("all"), open_mesh=False)
    (entry,) = hosts(port)[0].table
    assert isinstance(entry.action, Forward)
    assert entry.action.shares == (
        WeightedBackend(V1.key, "8080", 1, version=HttpVersion.HTTP1),
        AnsweredShare(403, 1),
    )


def test_policy_of_a_gateway_has_the_destinations_of_its_routes_alone() -> None:
    """It takes no calls of the mesh, and no calls to addresses of services."""
    view = g.view(*MESH, OPEN, g.gateway("edge"), route("shop", "v1"))
    policy = proxy_policy(view, group_of(view, EDGE))
    assert (policy.inbound, policy.outbound, policy.outside) == ((), (), ())
    assert [str(place.service) for place in policy.service_destinations] == ["default/v1"]
    assert [endpoint.address for endpoint in policy.service_destinations[0].endpoints] == ["10.0.0.2"]


def test_gateway_that_is_not_served_has_no_ports() -> None:
    """Without the Gateway, or with one of another controller, the proxy listens nowhere."""
    assert ports() == ()
    assert ports(g.gateway("edge", class_name="other"), g.FOREIGN_CLASS) == ()
    assert ports(g.gateway("edge", namespace="web")) == ()


def test_rejected_rule_goes_and_the_others_stay() -> None:
    """A match of a rule is a unit, also at the edge."""
    view = g.view(*MESH, OPEN, g.gateway("edge"), route("good", "v1"), route("bad", "v2", "bad.example"))
    policy = proxy_policy(view, group_of(view, EDGE))
    out = {unit for unit in units(policy) if isinstance(unit, AppliedRoute) and unit.by.name == "bad"}
    (port,) = without(policy, out).edge
    assert {host.hostname: len(host.table) for host in hosts(port)} == {"": 1, "bad.example": 1}
    assert {unit.by.name for unit in units(port) if isinstance(unit, AppliedRoute)} == {"good"}


def test_provenance_of_a_port_names_gateway_class_and_routes() -> None:
    """All objects that decide about the port, and the workload."""
    view = g.view(*MESH, OPEN, g.gateway("edge"), route("shop", "v1"))
    made = {str(item.key) for item in made_from(view, group_of(view, EDGE), GatewayPorts())}
    assert {
        "Gateway default/edge",
        "GatewayClass meshwright",
        "HTTPRoute default/shop",
        "Service default/v1",
        "Workload default/edge",
    } <= made


def test_backend_without_sidecars_is_called_in_plain_text() -> None:
    """Nobody behind it could refuse a caller, so a strict mesh needs no TrafficTarget for it."""
    bare = replace(a.workload("v1", "10.0.0.2"), uuid=None)
    view = g.view(V1, bare, EDGE, g.CLASS, g.gateway("edge"), route("shop", "v1"))
    (place,) = proxy_policy(view, group_of(view, EDGE)).service_destinations
    assert (place.plain, place.version) == (True, HttpVersion.HTTP1)
    assert [endpoint.address for endpoint in place.endpoints] == ["10.0.0.2"]


def test_one_endpoint_with_a_sidecar_keeps_the_others_from_plain_text() -> None:
    """An endpoint without a sidecar must not take the place of one that proves its identity."""
    bare = replace(a.workload("v1", "10.0.0.7"), key=WorkloadKey(a.DEFAULT, "bare"), uuid=None)
    view = g.view(*MESH, OPEN, bare, g.gateway("edge"), route("shop", "v1"))
    (place,) = proxy_policy(view, group_of(view, EDGE)).service_destinations
    assert (place.plain, [endpoint.address for endpoint in place.endpoints]) == (False, ["10.0.0.2"])


def test_version_of_http_is_that_of_the_backend() -> None:
    """HTTPRouteBackendProtocolH2C: a client's version means nothing behind a gateway."""
    for protocol, http2, version in (
        (Protocol.HTTP, False, HttpVersion.HTTP1),
        (Protocol.HTTP, True, HttpVersion.HTTP2),
        (Protocol.GRPC, False, HttpVersion.HTTP2),
    ):
        service = a.service("v1", replace(a.port(80, protocol=protocol), http2=http2), address="10.1.0.2")
        view = g.view(service, *MESH[1:], OPEN, g.gateway("edge"), route("shop", "v1"))
        (place,) = proxy_policy(view, group_of(view, EDGE)).service_destinations
        assert place.version is version


def connections(*things: object) -> EdgeChain:
    """Return the only filter chain of the only port."""
    (port,) = ports(*things)
    (chain,) = port.chains
    return chain


def tcp(name: str, *backends: Backend, created: str = "") -> GatewayRoute:
    """Make a TCPRoute at the gateway's listener `tcp`."""
    return g.tcp_route(name, Rule(backends=backends), parents=(g.at("edge", "tcp"),), created=created)


TCP_GATEWAY = g.gateway("edge", g.listener("tcp", 5432, protocol="TCP"))


def test_oldest_tcp_route_gets_all_connections() -> None:
    """TCPRouteMultipleRoutesAttachment: the younger one is accepted, and without effect."""
    old = tcp("z-old", g.to("v1", weight=70), g.to("v2", weight=30), created="2026-01-01T00:00:00Z")
    young = tcp("a-young", g.to("v2"), created="2026-02-01T00:00:00Z")
    shares = (WeightedBackend(V1.key, "8080", 70), WeightedBackend(V2.key, "8080", 30))
    source = RouteSource(AppliedRoute(GATEWAY_TCP_ROUTE, old.key, 0, old.rules[0], 0))
    assert connections(TCP_GATEWAY, young, old) == EdgeChain(entry=RouteEntry((), Forward(shares), (source,)))


def test_share_of_a_missing_backend_stays_and_weight_zero_goes() -> None:
    """The connections of the missing backend are closed, and never forwarded to another one."""
    chain = connections(TCP_GATEWAY, tcp("db", g.to("v1"), g.to("missing"), g.to("v2", weight=0)))
    assert chain.entry is not None
    assert chain.entry.shares == (WeightedBackend(V1.key, "8080", 1), AnsweredShare(500, 1))


def test_tcp_listener_without_routes_is_closed() -> None:
    """The port is open, and every connection is closed."""
    assert connections(TCP_GATEWAY) == EdgeChain()


def test_destination_of_connections_is_called_as_connections() -> None:
    """A port with TCP alone selects the caller's filter chain by the server name."""
    view = g.view(*MESH, OPEN, TCP_GATEWAY, tcp("db", g.to("v1")))
    (place,) = proxy_policy(view, group_of(view, EDGE)).service_destinations
    assert (place.is_http, [endpoint.address for endpoint in place.endpoints]) == (False, ["10.0.0.2"])


def tls(
    name: str, backend: str, *hostnames: str, section: str | None = None, created: str = ""
) -> GatewayRoute:
    """Make a TLSRoute with one backend."""
    rule = Rule(backends=(g.to(backend),))
    return g.tls_route(name, rule, parents=(g.at("edge", section),), hostnames=hostnames, created=created)


def passed(*things: object) -> dict[str, str | None]:
    """Return the name of the route behind each server name at the one port; None for closed connections."""
    (port,) = ports(*things)
    return {
        chain.tls.server_name: None if chain.entry is None else chain.entry.provenance[0].part.by.name
        for chain in port.chains
        if chain.tls is not None and not chain.tls.certificates
    }


def test_server_name_selects_the_route() -> None:
    """TLSRouteHostnameIntersection: whole value of one name; all other names are closed."""
    shop = tls("shop", "v1", "shop.example")
    (port,) = ports(g.gateway("edge", g.passthrough(hostname="*.example")), shop)
    source = RouteSource(AppliedRoute(TLS_ROUTE, shop.key, 0, shop.rules[0], 0))
    entry = RouteEntry((), Forward((WeightedBackend(V1.key, "8080", 1),)), (source,))
    assert port.chains == (EdgeChain(EdgeTls("*.example")), EdgeChain(EdgeTls("shop.example"), entry=entry))


def test_most_specific_listener_and_then_route_get_a_server_name() -> None:
    """A listener without routes keeps its names; an older route is no match for a narrower one."""
    gateway = g.gateway("edge", g.passthrough("all"), g.passthrough("cart", hostname="cart.example"))
    any_name = tls("any", "v1", section="all", created="2026-01-01T00:00:00Z")
    wide = tls("wide", "v1", "*.example", section="all", created="2026-01-01T00:00:00Z")
    exact = tls("exact", "v2", "shop.example", section="all", created="2026-02-01T00:00:00Z")
    younger = tls("younger", "v2", "shop.example", section="all", created="2026-03-01T00:00:00Z")
    assert passed(gateway, any_name, wide, exact, younger) == {
        "": "any",
        "*.example": "wide",
        "cart.example": None,
        "shop.example": "exact",
    }


def https_answers(*things: object) -> dict[str, dict[str, list[str]]]:
    """Return, by server name, the host names with the routes or the status behind them."""
    (port,) = ports(*things)
    return {
        chain.tls.server_name: {
            host.hostname: [
                entry.provenance[0].part.by.name if entry.provenance else str(entry.action)
                for entry in host.table
            ]
            for host in chain.hosts
        }
        for chain in port.chains
        if chain.tls is not None and chain.hosts is not None
    }


def test_listener_with_https_has_a_chain_of_its_own() -> None:
    """The whole value: names of Secrets, and never their content."""
    view = g.view(*MESH, OPEN, g.gateway("edge", g.https(hostname="shop.example")), g.tls_secret())
    (port,) = _ports(view)
    tls = EdgeTls("shop.example", (a.policy_key("cert"),))
    assert port.chains == (EdgeChain(tls, hosts=(EdgeHost("shop.example", ()),)),)
    assert edge_secrets(view, group_of(view, EDGE)) == (g.tls_secret(),)


def test_host_of_another_listener_is_misdirected() -> None:
    """HTTPRouteHTTPSListenerDetectMisdirectedRequests: 421 for the others' names, 404 for names of nobody."""
    gateway = g.gateway(
        "edge",
        g.https("all"),
        g.https("second", "second.example"),
        g.https("wild", "*.wild.example"),
        g.https("fourth", "fourth.wild.example"),
    )
    any_route, second = route("any", "v1", "example.org"), route("second", "v2", section="second")
    away = [str(Answer(HTTPStatus.MISDIRECTED_REQUEST))]
    assert https_answers(gateway, g.tls_secret(), any_route, second) == {
        "": {
            "": [],
            "*.wild.example": away,
            "example.org": ["any"],
            "fourth.wild.example": away,
            "second.example": away,
        },
        "*.wild.example": {
            "": away,
            "*.wild.example": [],
            "fourth.wild.example": away,
            "second.example": away,
        },
        "fourth.wild.example": {
            "": away,
            "*.wild.example": away,
            "fourth.wild.example": [],
            "second.example": away,
        },
        "second.example": {
            "": away,
            "*.wild.example": away,
            "fourth.wild.example": away,
            "second.example": ["second"],
        },
    }


def test_names_that_no_listener_has_are_not_misdirected() -> None:
    """Without a listener for all names the answer is 404, as the list of hosts has no `""`."""
    gateway = g.gateway("edge", g.https("one", "one.example"), g.passthrough("two", hostname="two.example"))
    away = [str(Answer(HTTPStatus.MISDIRECTED_REQUEST))]
    assert https_answers(gateway, g.tls_secret()) == {"one.example": {"one.example": [], "two.example": away}}


def test_tls_listener_may_end_tls() -> None:
    """TLSRouteTerminateSimpleSameNamespace: backends get what is inside."""
    gateway = g.gateway("edge", g.https("tls", "*.example", protocol="TLS"))
    (port,) = ports(gateway, g.tls_secret(), tls("shop", "v1", "shop.example"))
    shown = (a.policy_key("cert"),)
    assert [chain.tls for chain in port.chains] == [
        EdgeTls("*.example", shown),
        EdgeTls("shop.example", shown),
    ]
    assert [chain.entry is None for chain in port.chains] == [True, False]


def test_listener_without_a_certificate_leaves_the_others_alone() -> None:
    """GatewayInvalidTLSConfiguration: the good listener beside it serves."""
    gateway = g.gateway("edge", g.https("bad", "bad.example", "missing"), g.https("good", "good.example"))
    assert https_answers(gateway, g.tls_secret()) == {"good.example": {"good.example": []}}


def test_changed_secret_changes_no_listener() -> None:
    """Only what is delivered beside the policy is another value."""
    renewed = replace(g.tls_secret(), private_key=PrivateKey(b"[another]"))
    gateway = g.gateway("edge", g.https())
    before, after = (g.view(*MESH, OPEN, gateway, item) for item in (g.tls_secret(), renewed))
    assert _ports(before) == _ports(after)
    assert edge_secrets(after, group_of(after, EDGE)) == (renewed,)


def test_listeners_of_a_set_are_at_the_gateways_ports_with_routes_of_their_own() -> None:
    """ListenerSetHTTPRouting: listeners with one name at one port, each with the routes of its parent."""
    things = (
        g.open_gateway("edge", g.listener(hostname="own.example")),
        g.listener_set("set", g.listener(hostname="set.example"), g.listener("more", 81)),
        g.http_route("own", TO_V1, parents=(g.at("edge"),)),
        g.http_route("set", TO_V1, parents=(g.at_set("set", "http"),)),
        g.http_route("both", TO_V1, parents=(g.at("edge"), g.at_set("set"))),
    )
    first, second = ports(*things)
    tables = {
        (port.port, host.hostname): [entry.provenance[0].part.by.name for entry in host.table]
        for port in (first, second)
        for host in hosts(port)
    }
    assert tables == {
        (80, "own.example"): ["both", "own"],
        (80, "set.example"): ["both", "set"],
        (81, ""): ["both"],
    }
    view = g.view(*MESH, OPEN, *things)
    made = {str(item.key) for item in made_from(view, group_of(view, EDGE), GatewayPorts())}
    assert {"Gateway default/edge", "ListenerSet default/set"} <= made


def test_certificate_of_a_set_reaches_the_proxies() -> None:
    """The Secret is of the set's namespace."""
    far = g.listener_set("set", g.https(), at="default", namespace="far")
    view = g.view(*MESH, OPEN, g.open_gateway("edge"), far, g.tls_secret(namespace="far"))
    assert [secret.key for secret in edge_secrets(view, group_of(view, EDGE))] == [
        a.policy_key("cert", "far")
    ]


def test_validated_clients_are_a_mode_of_the_chains_and_ca_certificates_of_the_port() -> None:
    """The content is a secret of its own, so that a new CA certificate changes no listener."""
    gateway = g.with_validation(
        g.gateway("edge", g.listener(), g.https()), g.validation(mode=ValidationMode.INSECURE_FALLBACK)
    )
    view = g.view(*MESH, gateway, g.tls_secret(), g.ca_bundle())
    plain, secure = _ports(view)
    assert [chain.tls for chain in (*plain.chains, *secure.chains)] == [
        None,
        EdgeTls("", (a.policy_key("cert"),), ValidationMode.INSECURE_FALLBACK),
    ]
    group = group_of(view, EDGE)
    assert edge_authorities(view, group) == (EdgeAuthorities(a.policy_key("edge"), Port(443), "[ca]"),)
    named = {item.key.name for item in made_from(view, group, GatewayPorts()) if item.key.kind == CONFIG_MAP}
    assert named == {"ca"}
    view.apply(Edits(objects=g.view(g.ca_bundle(fault="is empty")).known().objects))
    assert [port.port for port in _ports(view)] == [80]
    assert edge_authorities(view, group) == ()


def test_ports_of_many_routes_cost_calls_in_proportion_to_their_number() -> None:
    """Each route has a host name of its own. With a look at all routes for each name it was the square."""

    def work(count: int) -> int:
        routes = [
            replace(
                g.http_route(f"r{number}", TO_V1, parents=(g.at("edge"),)),
                hostnames=(f"host-{number}.example",),
            )
            for number in range(count)
        ]
        calls = Calls()
        with calls:
            (port,) = ports(g.gateway("edge"), *routes)
        assert len(port.chains[0].hosts or ()) == count + 1
        return calls.count

    assert work(160) <= 4.4 * work(40)
