"""Explanations of requests to gateways: the listener, the route, and why there is another answer than 200."""

from dataclasses import replace

import pytest

from catalog.explain import EdgeExplanation, default_port, explain_edge
from catalog.oracle.decide import Answer
from catalog.oracle.edge import EdgeRequest
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Filters, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, GatewayClass, ValidationMode
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS, GATEWAY_TCP_ROUTE, HTTP_ROUTE
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import Edge
from tests.meshes import gateway as g
from tests.meshes import values as a

V1, V2 = a.service("v1", address="10.1.0.2"), a.service("v2", address="10.1.0.3")
OPEN = MeshConfig(permissive=True)
EDGE = replace(a.workload("edge", "10.0.0.9"), interception=Edge("edge"))
MESH = (V1, V2, a.workload("v1", "10.0.0.2"), EDGE, g.CLASS)
TWO = g.gateway("edge", g.listener("all"), g.listener("shop", hostname="*.shop.example"))
TO_V1 = Rule((g.prefix("/cart"),), backends=(g.to("v1"),))
ROUTE = g.http_route("cart", TO_V1, parents=(g.at("edge"),), hostnames=("eu.shop.example",))


def explained(
    *things: object,
    host: str = "eu.shop.example",
    path: str = "/cart",
    port: int = 80,
    open_mesh: bool = True,
    server_name: str = "",
) -> EdgeExplanation:
    """Explain a request to the gateway `edge`."""
    view = g.view(*MESH, *((OPEN,) if open_mesh else ()), *things)
    key = PolicyKey(Namespace("default"), "edge")
    return explain_edge(view, EdgeRequest(key, Port(port), host, path=path, server_name=server_name))


def texts(result: EdgeExplanation) -> list[str]:
    """Return the sentences of an explanation."""
    return [step.text for step in result.steps]


def test_good_request_names_listener_route_and_backend() -> None:
    """The steps are in the order in which the gateway decides."""
    result = explained(TWO, ROUTE)
    assert (result.answer, result.headline) == (Answer.ALLOWED, "allowed")
    steps = texts(result)
    assert steps[0] == "Listener shop (HTTP, port 80) answers for *.shop.example."
    assert (
        "HTTPRoute default/cart, spec.rules[0].matches[0], decides the request: its path begins with /cart."
        in (steps)
    )
    assert f"The gateway calls its backends as ServiceAccount {EDGE.identity}." in steps
    assert steps[-1] == "The request is allowed."
    assert [key.name for key in result.because] == ["edge", "cart"]


@pytest.mark.parametrize(
    ("host", "path", "named"),
    [
        ("us.shop.example", "/cart", "HTTPRoute default/cart is for other host names: eu.shop.example."),
        ("eu.shop.example", "/other", "No rule of HTTPRoute default/cart fits the path, method and headers"),
        ("other.test", "/cart", "HTTPRoute default/cart is for other host names: eu.shop.example."),
    ],
)
def test_request_without_a_route_gets_404_by_host_or_path(host: str, path: str, named: str) -> None:
    """A less specific listener does not answer for the host of a more specific one."""
    result = explained(TWO, ROUTE, host=host, path=path)
    assert (result.answer, result.headline) == (Answer.REFUSED, "refused: 404")
    assert any(named in text for text in texts(result))
    assert texts(result)[-1].endswith("The gateway answers 404.")


def test_listeners_without_the_host_are_listed() -> None:
    """The question that follows is which hosts there are."""
    result = explained(g.gateway("edge", g.listener("shop", hostname="shop.example")), host="other.test")
    assert texts(result) == [
        "Listener shop has port 80 for shop.example: the listener is in force at port 80.",
        "The listeners at port 80 are for other hosts than other.test. The gateway answers 404.",
    ]


def test_route_that_the_gateway_refuses_is_named_with_the_reason() -> None:
    """The author of the route reads why it is not there; another one is at another listener."""
    elsewhere = g.http_route("elsewhere", TO_V1, parents=(g.at("edge", "all"),))
    steps = texts(explained(TWO, elsewhere))
    assert any("HTTPRoute default/elsewhere is attached to other listeners" in text for text in steps)
    refused = g.http_route("far", TO_V1, parents=(g.at("edge", namespace="default"),), namespace="other")
    steps = texts(explained(g.gateway("edge"), refused))
    assert any("HTTPRoute other/far is refused (NotAllowedByListeners)" in text for text in steps)


def test_missing_traffic_target_has_a_remedy_with_the_gateways_account() -> None:
    """The printed manifests admit the ServiceAccount of the gateway's workload, and no client."""
    result = explained(TWO, ROUTE, open_mesh=False)
    assert (result.answer, result.headline) == (Answer.REFUSED, "refused: 403")
    target = next(item for item in result.missing if item["kind"] == "TrafficTarget")
    spec = target["spec"]
    assert isinstance(spec, dict)
    account = {"kind": "ServiceAccount", "name": "edge", "namespace": "default"}
    assert spec["sources"] == [account]


def test_broken_backend_is_500_and_a_backend_without_workloads_503() -> None:
    """A share of each makes the answer depend on the backend."""

    def headline(*backends: str) -> str:
        rule = Rule(backends=tuple(g.to(name) for name in backends))
        return explained(TWO, g.http_route("cart", rule, parents=(g.at("edge"),))).headline

    assert headline("none") == "refused: 500"
    assert headline("v2") == "unreachable: 503"
    assert headline("v1", "none") == headline("v1", "v2") == "depends"
    assert headline() == "refused: 500"


def test_backend_of_another_namespace_needs_a_grant() -> None:
    """In a mesh it would not."""
    there = a.service("there", namespace="other", address="10.1.0.9")
    rule = Rule(backends=(g.to("there", namespace="other"),))
    result = explained(TWO, there, g.http_route("cart", rule, parents=(g.at("edge"),)))
    assert result.headline == "refused: 500"
    assert any("RefNotPermitted" in text for text in texts(result))


def test_redirect_is_the_gateways_own_answer() -> None:
    """A redirect is what the author of the route wants."""
    rule = Rule(filters=Filters(redirect=Redirect(scheme="https", status=301)))
    result = explained(TWO, g.http_route("cart", rule, parents=(g.at("edge"),)))
    assert (result.answer, result.headline) == (Answer.ALLOWED, "redirected: 301")


def test_servers_rules_see_the_rewritten_path() -> None:
    """The remedy is for the path that the backend gets."""
    rewrite = Filters(rewrite=Rewrite(path=NewPath(PathForm.FULL, "/new")))
    rule = Rule(backends=(g.to("v1"),), filters=rewrite)
    result = explained(TWO, g.http_route("cart", rule, parents=(g.at("edge"),)), open_mesh=False)
    assert "/new" in str(result.missing[0])


def test_gateway_that_nobody_serves_is_unreachable() -> None:
    """A missing gateway, one without workloads, and a port without a listener."""
    assert texts(explained(g.gateway("edgy"))) == [
        "Gateway default/edge does not exist (did you mean edgy?), so the mesh does not serve the gateway."
    ]
    assert texts(explained(TWO, port=81))[-1] == (
        "The gateway has no listener at port 81, so connections are refused: its listeners have port 80."
    )
    alone = g.view(g.CLASS, TWO)
    result = explain_edge(alone, EdgeRequest(TWO.key, Port(80), "a.test"))
    assert (result.answer, result.steps[-1].text) == (
        Answer.UNREACHABLE,
        "Gateway default/edge lacks a workload: `spec.gateway` of a Workload must name the Gateway.",
    )


def test_most_specific_host_name_of_a_route_decides_first() -> None:
    """A younger route with an exact name precedes an older one with a longer path."""
    old = g.http_route(
        "old",
        Rule((g.prefix("/cart/long"),), backends=(g.to("v1"),)),
        parents=(g.at("edge"),),
        hostnames=("*.shop.example",),
        created="2026-01-01T00:00:00Z",
    )
    result = explained(TWO, ROUTE, old, path="/cart/long")
    assert result.because[-1].name == "cart"


SECURE = (
    g.gateway(
        "edge",
        g.https("shop", "*.shop.example"),
        g.https("pay", "pay.example"),
        g.passthrough("db", 443, "db"),
    ),
    g.tls_secret(),
    g.http_route("cart", Rule(backends=(g.to("v1"),)), parents=(g.at("edge", "shop"),)),
)
OTHERS_HOST = (
    "Listener pay at the same port is for host pay.example, but the server name selects listener shop"
)
NO_NAME = "No listener at port 443 is for connections without a server name"
CLOSED = "The gateway closes the connection in the TLS handshake, without an answer."
BESIDE = "refused: the connection is closed in the TLS handshake"


@pytest.mark.parametrize(
    ("server_name", "last"),
    [
        (
            "other.test",
            "No listener at port 443 is for the server name other.test, so there is no certificate for it. ",
        ),
        ("", f"{NO_NAME}, so there is no certificate for them. "),
        ("db", "The listener lacks a route. "),
    ],
)
def test_server_name_without_a_listener_gets_no_handshake(server_name: str, last: str) -> None:
    """A status would need a connection first."""
    result = explained(*SECURE, host=server_name, port=443)
    assert (result.answer, result.headline) == (Answer.REFUSED, BESIDE)
    assert texts(result)[-1] == last + CLOSED


def test_listener_that_ends_tls_without_a_route_closes_the_connection_in_the_handshake() -> None:
    """The proxy looks for the backend before the handshake."""
    ended = g.gateway("edge", g.https("db", "db", protocol="TLS")), g.tls_secret()
    result = explained(*ended, host="db", port=443)
    assert (result.headline, texts(result)[-1]) == (BESIDE, f"The listener lacks a route. {CLOSED}")


@pytest.mark.parametrize(
    ("host", "headline", "last"),
    [
        ("eu.shop.example", "allowed", "The request is allowed."),
        (
            "other.test",
            "refused: 404",
            "Listener shop is for other hosts than other.test. The gateway answers 404.",
        ),
        (
            "pay.example",
            "refused: 421",
            f"{OTHERS_HOST}. The gateway answers 421, so that a client with HTTP/2 opens another connection.",
        ),
    ],
)
def test_other_host_than_the_server_name_gets_a_status(host: str, headline: str, last: str) -> None:
    """The server name selects the listener, and the host of the request a route there."""
    result = explained(*SECURE, host=host, port=443, server_name="us.shop.example")
    assert (result.headline, texts(result)[-1]) == (headline, last)


@pytest.mark.parametrize(
    ("backends", "open_mesh", "headline", "last"),
    [
        (("v1",), True, "allowed", "The connection is allowed."),
        (("none",), True, BESIDE, f"No backend of the rule exists and has a weight. {CLOSED}"),
        (
            ("v2",),
            True,
            "unreachable: the connection is closed",
            "No endpoint of the backends is ready. The gateway closes the connection.",
        ),
        (
            ("v1", "none"),
            True,
            "depends",
            "The answer depends on the backend: the connection is forwarded, or closed without an answer.",
        ),
        (
            ("v1", "none"),
            False,
            "refused: the connection is closed",
            "The connection is closed without an answer.",
        ),
    ],
)
def test_connection_has_no_status(
    backends: tuple[str, ...], open_mesh: bool, headline: str, last: str
) -> None:
    """A listener with TLS closes a connection where a listener with HTTPS would answer a request."""
    rule = Rule(backends=tuple(g.to(name, 5432) for name in backends))
    port = a.port(5432, protocol=Protocol.TCP)
    result = explained(
        g.gateway("edge", g.passthrough("db", 443, "db")),
        g.tls_route("db", rule, parents=(g.at("edge"),)),
        *(a.service(name, port, address=f"10.1.0.{number}") for number, name in enumerate(("v1", "v2"), 2)),
        host="db",
        port=443,
        open_mesh=open_mesh,
    )
    assert (result.headline, texts(result)[-1]) == (headline, last)
    assert not any("403" in text for text in texts(result))


NO_CERTIFICATE = "the listener is out of force, because it lacks a certificate"
NO_LISTENER = "The gateway has no listener at port 80, so connections are refused: its listeners have"


def test_listeners_out_of_force_are_listed_with_the_reason() -> None:
    """A missing certificate, a conflict and an unknown protocol; the author learns what to correct."""
    many = g.gateway(
        "edge",
        g.https("https", "books.example", "gone"),
        g.listener("udp", 53, protocol="UDP"),
        g.listener("one", 8080),
        g.listener("two", 8080),
    )
    result = explained(many, port=443)
    assert (result.answer, result.headline) == (Answer.UNREACHABLE, "unreachable")
    out = "has port 8080 for all hosts, and is not in force (HostnameConflict): listener"
    same = "has the same port 8080 and host name (all host names)."
    no_certificate = "Secret default/gone does not exist, or cannot be read."
    protocols = "protocol UDP is not served; listeners may have the protocol HTTP, HTTPS, TCP, TLS."
    assert texts(result) == [
        f"Listener https has port 443 for books.example: {NO_CERTIFICATE}: {no_certificate}",
        f"Listener udp has port 53 for all hosts, and is not in force (UnsupportedProtocol): {protocols}",
        f"Listener one {out} two {same}",
        f"Listener two {out} one {same}",
        "No listener of the gateway is in force at port 443, so connections are refused.",
    ]
    assert texts(explained(many, port=80))[-1] == f"{NO_LISTENER} ports 53, 443 and 8080."


def test_question_without_a_port_is_about_a_declared_one() -> None:
    """The first listener in force, else the first one, although it is out of force."""
    key = PolicyKey(Namespace("default"), "edge")
    broken = g.https("https", "books.example", "gone")
    assert default_port(g.view(*MESH, g.gateway("edge", broken, g.listener())), key) == 80
    assert default_port(g.view(*MESH, g.gateway("edge", broken)), key) == 443
    assert default_port(g.view(*MESH), key) is None


CLASS_MISSING = "of GatewayClass mesh-wright, which does not exist"
THERE = "there are the GatewayClasses meshwright, meshwrigth and other"
CLASS_WITH = "of GatewayClass mesh-wright with the controllerName"
NEEDED = "a gateway of Meshwright needs meshwright.dev/gateway-controller"
OF_CLASS = "Gateway default/edge is of GatewayClass meshwright"
NOT_SERVED = "the mesh does not serve the gateway."


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        (
            (g.FOREIGN_CLASS, GatewayClass("meshwrigth", CONTROLLER_NAME)),
            f"{CLASS_MISSING} (did you mean meshwright, meshwrigth?); {THERE}",
        ),
        (
            (GatewayClass("mesh-wright", "meshwright.dev/gateway-controler"),),
            f"{CLASS_WITH} meshwright.dev/gateway-controler: {NEEDED}",
        ),
    ],
)
def test_class_out_of_use_is_named_with_the_right_one(classes: tuple[GatewayClass, ...], why: str) -> None:
    """A missing class, and one with another controller."""
    result = explained(*classes, g.gateway("edge", class_name="mesh-wright"))
    assert (result.answer, texts(result)) == (
        Answer.UNREACHABLE,
        [f"Gateway default/edge is {why}, so the mesh does not serve the gateway."],
    )


def test_missing_class_without_any_class() -> None:
    """A mesh of manifests may lack every class."""
    view = g.view(V1, EDGE, g.gateway("edge"))
    result = explain_edge(view, EdgeRequest(PolicyKey(Namespace("default"), "edge"), Port(80), "a.test"))
    assert [step.text for step in result.steps] == [
        f"{OF_CLASS}, which does not exist; there is no GatewayClass, so {NOT_SERVED}"
    ]


def refused(key: ObjectKey, field: str = "spec.f", severity: Severity = Severity.ERROR) -> Problem:
    """Return a problem of the reader."""
    origin = InFile("m.yaml", 1, 1)
    return Problem(
        code="MW1013", severity=severity, origin=origin, key=key, field=field, value="x", expected="must be y"
    )


THE_GATEWAY = ObjectKey(GATEWAY, Namespace("default"), "edge")
REFUSED_ROUTE = ObjectKey(HTTP_ROUTE, Namespace("shop"), "cart")
ASKED = EdgeRequest(PolicyKey(Namespace("default"), "edge"), Port(80), "eu.shop.example", path="/cart")


def test_refused_gateway_is_named_with_its_problems() -> None:
    """A manifest that cannot be read is not a missing one."""
    problems = (refused(THE_GATEWAY), refused(THE_GATEWAY, "spec.g"))
    result = explain_edge(g.view(*MESH), ASKED, problems)
    assert (result.answer, [(step.text, step.depth) for step in result.steps]) == (
        Answer.UNREACHABLE,
        [
            ("MW1013 spec.f is x: must be y", 1),
            ("MW1013 spec.g is x: must be y", 1),
            ("Gateway default/edge exists, but is refused, so the mesh does not serve the gateway.", 0),
        ],
    )
    assert result.steps[0].objects == ((THE_GATEWAY, InFile("m.yaml", 1, 1)),)


def test_refused_class_is_named_with_its_problems() -> None:
    """The gateway is in order then."""
    key = ObjectKey(GATEWAY_CLASS, Namespace(""), "meshwright")
    view = g.view(V1, EDGE, g.gateway("edge"))
    result = explain_edge(view, ASKED, (refused(key),))
    assert [step.text for step in result.steps] == [
        "MW1013 spec.f is x: must be y",
        f"{OF_CLASS}, which exists, but is refused, so {NOT_SERVED}",
    ]


def test_gateway_in_force_is_explained_in_spite_of_problems() -> None:
    """A dropped listener is a problem of a Gateway in force."""
    view = g.view(*MESH, OPEN, TWO, ROUTE)
    assert explain_edge(view, ASKED, (refused(THE_GATEWAY),)) == explain_edge(view, ASKED)


def test_refused_routes_are_named_where_a_route_is_missing() -> None:
    """Their parents are not known, because their manifests cannot be read; a warning refuses nothing."""
    tcp = ObjectKey(GATEWAY_TCP_ROUTE, Namespace("shop"), "tcp")
    held = refused(REFUSED_ROUTE, severity=Severity.WARNING)
    result = explain_edge(g.view(*MESH, TWO), ASKED, (refused(REFUSED_ROUTE), refused(tcp), held))
    assert texts(result)[-2:] == [
        "HTTPRoute shop/cart is refused, so no listener has it: MW1013 spec.f is x: must be y",
        "The listener lacks a route. The gateway answers 404.",
    ]
    assert texts(explain_edge(g.view(*MESH, TWO), ASKED, (held,)))[-2:] == [
        "Listener shop (HTTP, port 80) answers for *.shop.example.",
        "The listener lacks a route. The gateway answers 404.",
    ]
    many = tuple(refused(replace(REFUSED_ROUTE, name=f"r{number}")) for number in range(7))
    assert texts(explain_edge(g.view(*MESH, TWO), ASKED, many))[-2] == "2 more routes are refused."


def test_listener_of_a_set_is_named_with_the_set() -> None:
    """The routes of the gateway's own listeners are no candidates there."""
    gateway = g.open_gateway("edge", g.listener(hostname="own.example"))
    found = g.listener_set("set", g.listener(hostname="*.shop.example"))
    other = g.http_route("other", TO_V1, parents=(g.at_set("set", "missing"),))
    route = g.http_route("cart", TO_V1, parents=(g.at_set("set"),))
    own = g.http_route("own", TO_V1, parents=(g.at("edge"),))
    result = explained(gateway, found, route, other, own)
    assert result.answer is Answer.ALLOWED
    listener, refused = texts(result)[:2]
    assert listener == "Listener http of ListenerSet default/set (HTTP, port 80) answers for *.shop.example."
    why = "ListenerSet default/set lacks a listener named missing"
    assert refused == f"HTTPRoute default/other is refused (NoMatchingParent): {why}."
    assert [str(key) for key in result.because] == ["ListenerSet default/set", "HTTPRoute default/cart"]
    assert explained(gateway, found, route, host="own.example").headline == "refused: 404"
    nowhere = texts(explained(gateway, found, host="else.example"))
    assert "Listener http of ListenerSet default/set has port 80 for *.shop.example: " in nowhere[1]


def test_set_that_is_not_allowed_is_named_where_a_listener_is_missing() -> None:
    """Its author would look for the listener in vain."""
    result = explained(g.gateway("edge"), g.listener_set("set", g.listener("more", 8080)), port=8080)
    why = "Gateway default/edge does not allow ListenerSets of namespace default in spec.allowedListeners"
    assert texts(result)[1] == f"ListenerSet default/set is not attached (NotAllowed): {why}."
    assert result.answer is Answer.UNREACHABLE


NEEDS_CERTIFICATE = "Clients need a certificate of an authority in ConfigMap default/ca."
MAY_SHOW = "Clients are asked for a certificate,"


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (
            ValidationMode.VALID_ONLY,
            f"{NEEDS_CERTIFICATE} The gateway closes connections without one in the TLS handshake.",
        ),
        (
            ValidationMode.INSECURE_FALLBACK,
            f"{MAY_SHOW} and are admitted with any certificate and without one (AllowInsecureFallback).",
        ),
    ],
)
def test_certificate_that_clients_need_is_named(mode: ValidationMode, text: str) -> None:
    """The rest of the explanation is for a client with a valid certificate."""
    gateway = g.with_validation(g.gateway("edge", g.https()), g.validation(mode=mode))
    result = explained(gateway, g.tls_secret(), g.ca_bundle(), ROUTE, port=443)
    assert (result.headline, texts(result)[1]) == ("allowed", text)
    broken = explained(gateway, g.tls_secret(), ROUTE, port=443)
    assert "is not in force (NoValidCACertificate)" in texts(broken)[0]
