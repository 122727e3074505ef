"""Lint of Gateways, of the workloads that serve them, and of routes that are attached to them."""

from dataclasses import replace

import pytest

import catalog.lint.problems
from catalog.lint.codes import Code
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Filters, NewPath, PathForm, Redirect
from meshwright.mesh.gateway.gateways import GatewayClass, Listener, RoutesFrom
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import TLS_ROUTE
from meshwright.mesh.names import Port
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.workload import Edge, Workload
from tests.meshes import gateway as g
from tests.meshes import values as a

V1 = a.service("v1", address="10.1.0.2")
OPEN = MeshConfig(permissive=True)
TO_V1 = Rule(backends=(g.to("v1"),))
SHOP = g.listener("shop", 81, "shop.example", namespaces=RoutesFrom.NONE)


def serving(name: str = "edge", address: str = "10.0.0.9", gateway: str = "edge") -> Workload:
    """Make a workload that serves a gateway."""
    return replace(a.workload(name, address), interception=Edge(gateway))


MESH = (V1, a.workload("v1", "10.0.0.2"), serving(), g.CLASS)


def found(mesh: View, *codes: Code) -> list[Problem]:
    """Return the problems with these codes."""
    return [problem for problem in catalog.lint.problems.problems(mesh) if problem.code in codes]


def told(mesh: View, *codes: Code) -> list[tuple[str, str]]:
    """Return object and field of the problems with these codes."""
    return [(f"{problem.key}", problem.field) for problem in found(mesh, *codes)]


def test_good_gateway_with_a_route_has_no_problem() -> None:
    """Negative control, with the codes of all checks."""
    route = g.http_route("good", TO_V1, parents=(g.at("edge"),), hostnames=("shop.example",))
    mesh = g.view(*MESH, OPEN, g.gateway("edge"), route)
    assert [problem for problem in catalog.lint.problems.problems(mesh) if problem.code >= "MW2170"] == []


def test_missing_class_is_an_error_in_a_file_alone() -> None:
    """In a cluster the Gateway may be of another controller, which has no business here."""
    gateway = g.gateway("edge", class_name="meshwrigth")
    mesh = g.view(V1, g.CLASS, gateway)
    (problem,) = found(mesh, Code.UNKNOWN_GATEWAY_CLASS)
    assert (problem.field, problem.value) == ("spec.gatewayClassName", "meshwrigth")
    assert "did you mean meshwright?" in problem.expected
    key = g.key_of(gateway)
    mesh.apply(Edits(objects={key: SourcedObject(key, gateway, InCluster("east", "1", 1))}))
    assert found(mesh, Code.UNKNOWN_GATEWAY_CLASS) == []


def test_listeners_out_of_force_are_named_with_the_reason_of_the_status() -> None:
    """Both of a conflict, and an unsupported protocol; kinds that do not fit are another problem."""
    gateway = g.gateway(
        "edge",
        g.listener("one"),
        g.listener("two"),
        g.listener("odd", 8080, protocol="INVALID"),
        g.listener("kinds", 8081, kinds=(TLS_ROUTE,)),
    )
    mesh = g.view(*MESH, gateway)
    assert told(mesh, Code.LISTENER_NOT_ACCEPTED) == [
        ("Gateway default/edge", f"spec.listeners[{number}]") for number in range(3)
    ]
    reasons = [
        problem.expected.partition("(")[2].partition(")")[0]
        for problem in found(mesh, Code.LISTENER_NOT_ACCEPTED)
    ]
    assert reasons == ["HostnameConflict", "HostnameConflict", "UnsupportedProtocol"]
    assert told(mesh, Code.UNFIT_ROUTE_KINDS) == [
        ("Gateway default/edge", "spec.listeners[3].allowedRoutes.kinds")
    ]


def test_missing_certificate_of_a_listener_is_an_error() -> None:
    """The listener is accepted, so only this problem says why it serves nobody."""
    mesh = g.view(*MESH, g.gateway("edge", g.https()))
    assert told(mesh, Code.NO_CERTIFICATE) == [
        ("Gateway default/edge", "spec.listeners[0].tls.certificateRefs")
    ]
    assert found(g.view(*MESH, g.gateway("edge", g.https()), g.tls_secret()), Code.NO_CERTIFICATE) == []


def test_workload_without_its_gateway_serves_nothing() -> None:
    """A missing Gateway, and one of another controller."""
    mesh = g.view(serving(gateway="egde"), g.gateway("edge"), g.CLASS)
    (problem,) = found(mesh, Code.UNKNOWN_GATEWAY)
    assert (problem.field, "did you mean edge?" in problem.expected) == ("spec.gateway", True)
    foreign = g.view(serving(), g.gateway("edge", class_name="other"), g.FOREIGN_CLASS)
    (problem,) = found(foreign, Code.UNKNOWN_GATEWAY)
    assert problem.value == "edge"
    assert problem.expected == (
        "Gateway default/edge is of GatewayClass other with the controllerName example.com/controller: a "
        "gateway of Meshwright needs meshwright.dev/gateway-controller, so this workload serves nothing. "
        "Correct spec.controllerName of the GatewayClass, or spec.gatewayClassName of the Gateway."
    )


@pytest.mark.parametrize(
    ("address", "port", "is_shared"),
    [("10.0.0.9", 80, True), ("10.0.0.9", 8080, False), ("10.0.0.8", 80, False)],
)
def test_two_workloads_at_one_address_and_port_share_connections(
    address: str, port: int, *, is_shared: bool
) -> None:
    """Each of the two is told of the other."""
    rival = serving("rival", address, "other")
    gateways = (g.gateway("edge"), g.gateway("other", g.listener("http", port)))
    mesh = g.view(*MESH, rival, *gateways)
    names = ["default/edge", "default/rival"] if is_shared else []
    assert [problem.key and problem.key.path for problem in found(mesh, Code.SHARED_GATEWAY_PORT)] == names


def test_refused_parent_and_broken_references_at_a_gateway_are_errors() -> None:
    """The reason is that of the status; a grant is the remedy for another namespace."""
    rule = Rule(backends=(g.to("v1"), g.to("none"), g.to("far", namespace="other")))
    route = g.http_route("bad", rule, parents=(g.at("edge"), g.at("edge", "missing")))
    mesh = g.view(*MESH, OPEN, g.gateway("edge"), route)
    assert told(mesh, Code.ROUTE_NOT_ACCEPTED) == [("HTTPRoute default/bad", "spec.parentRefs[1]")]
    broken = found(mesh, Code.UNRESOLVED_REFERENCE)
    assert [problem.field for problem in broken] == [
        "spec.rules[0].backendRefs[1]",
        "spec.rules[0].backendRefs[2]",
    ]
    assert "BackendNotFound" in broken[0].expected
    assert broken[1].expected.endswith("Correct the reference, or create the ReferenceGrant.")


@pytest.mark.parametrize(
    ("listeners", "section", "hostname", "is_hidden"),
    [
        ((g.listener("all"), g.listener("shop", hostname="shop.example")), "all", "shop.example", True),
        ((g.listener("all"), g.listener("shop", hostname="shop.example")), "shop", "shop.example", False),
        ((g.listener("all"), g.listener("shop", hostname="shop.example")), "all", "*.example", False),
        ((g.listener("all"), g.listener("shop", 81, hostname="shop.example")), "all", "shop.example", False),
        ((g.listener("all"), g.listener("twin")), "all", "shop.example", True),
    ],
)
def test_route_behind_a_more_specific_listener_never_gets_a_request(
    listeners: tuple[Listener, ...], section: str, hostname: str, *, is_hidden: bool
) -> None:
    """A listener that is out of force gives no requests either."""
    route = g.http_route("route", TO_V1, parents=(g.at("edge", section),), hostnames=(hostname,))
    mesh = g.view(*MESH, OPEN, g.gateway("edge", *listeners), route)
    wanted = [("HTTPRoute default/route", "spec.parentRefs[0]")] if is_hidden else []
    assert told(mesh, Code.WITHOUT_REQUESTS) == wanted


@pytest.mark.parametrize(
    ("listeners", "text"),
    [
        (
            (g.https(),),
            (
                "Listener https gets no requests: the listener is out of force, because it lacks a "
                "certificate: Secret default/cert does not exist, or cannot be read. Correct the Gateway."
            ),
        ),
        (
            (g.listener("http", 81), SHOP),
            (
                "At the ports of its listeners (http) others have more specific host names, and answer in "
                "their place. Attach the route to the others."
            ),
        ),
        (
            (g.https(), g.listener("http", 81), SHOP),
            (
                "Listener https gets no requests: the listener is out of force, because it lacks a "
                "certificate: Secret default/cert does not exist, or cannot be read. At the ports of its "
                "listeners (http) others have more specific host names, and answer in their place. Correct "
                "the Gateway, or attach the route to the others."
            ),
        ),
    ],
)
def test_route_without_requests_hears_the_cause_and_its_remedy(
    listeners: tuple[Listener, ...], text: str
) -> None:
    """A missing certificate is no reason to attach the route to other listeners."""
    route = g.http_route("route", TO_V1, parents=(g.at("edge"),), hostnames=("shop.example",))
    (problem,) = found(g.view(*MESH, OPEN, g.gateway("edge", *listeners), route), Code.WITHOUT_REQUESTS)
    assert problem.expected == f"The route is attached, but never gets a request here. {text}"


@pytest.mark.parametrize(
    ("redirect", "loops"),
    [
        (Redirect(), True),
        (Redirect(scheme="http"), True),
        (Redirect(scheme="https"), False),
        (Redirect(port=Port(8080)), False),
        (Redirect(host="shop.example"), True),
        (Redirect(host="other.test"), False),
        (Redirect(path=NewPath(PathForm.FULL, "/new")), True),
    ],
)
def test_redirect_to_the_same_listener_goes_in_circles(redirect: Redirect, *, loops: bool) -> None:
    """A redirect to HTTPS is good at a listener with HTTP, and so is one to a foreign host."""
    rule = Rule((g.prefix("/"),), filters=Filters(redirect=redirect))
    route = g.http_route("route", rule, parents=(g.at("edge"),), hostnames=("*.example",))
    mesh = g.view(*MESH, g.gateway("edge"), route)
    wanted = [("HTTPRoute default/route", "spec.rules[0].filters")] if loops else []
    assert told(mesh, Code.REDIRECT_TO_ITSELF) == wanted


def test_redirect_to_https_loops_at_the_listener_with_https_alone() -> None:
    """A route without `sectionName` is attached to both listeners."""
    rule = Rule((g.prefix("/"),), filters=Filters(redirect=Redirect(scheme="https")))
    gateway = g.gateway("edge", g.listener(), g.https())
    route = g.http_route("route", rule, parents=(g.at("edge"),))
    (problem,) = found(g.view(*MESH, gateway, g.tls_secret(), route), Code.REDIRECT_TO_ITSELF)
    assert "listener https" in problem.expected
    narrowed = g.http_route("route", rule, parents=(g.at("edge", "http"),))
    assert found(g.view(*MESH, gateway, g.tls_secret(), narrowed), Code.REDIRECT_TO_ITSELF) == []


def test_backend_that_the_gateway_may_not_call_is_named_with_the_service_account() -> None:
    """Without permissive mode a TrafficTarget must name the gateway's ServiceAccount as a source."""
    route = g.http_route("route", TO_V1, parents=(g.at("edge"),))
    things = (*MESH, g.gateway("edge"), route)
    (problem,) = found(g.view(*things), Code.GATEWAY_DENIED)
    assert (problem.field, problem.value) == ("spec.rules[0].backendRefs[0]", "default/v1")
    assert f"ServiceAccount {serving().identity}" in problem.expected
    assert found(g.view(*things, OPEN), Code.GATEWAY_DENIED) == []


UNUSED = replace(g.gateway("edge"), unused=("spec.tls.frontend", "spec.defaultScope"))


@pytest.mark.parametrize(
    ("classes", "fields"),
    [
        ((g.CLASS,), ["spec.tls.frontend", "spec.defaultScope"]),
        ((GatewayClass("meshwright", "example.com/other"),), []),
        ((), []),
    ],
)
def test_fields_without_effect_are_a_problem_of_our_gateways(
    classes: tuple[GatewayClass, ...], fields: list[str]
) -> None:
    """Another controller may support the fields."""
    found = [
        (str(problem.key), problem.field, problem.severity.value)
        for problem in catalog.lint.problems.problems(g.view(UNUSED, *classes))
        if problem.code == Code.GATEWAY_FIELD_NOT_USED
    ]
    assert found == sorted(("Gateway default/edge", field, "warning") for field in fields)


def test_route_at_a_set_is_judged_by_the_listeners_of_the_set() -> None:
    """A listener of the gateway has the same name, and a more specific host name in another case."""
    own, other = g.listener(hostname="own.example"), g.listener(hostname="*.example")
    route = g.http_route("route", TO_V1, parents=(g.at_set("set"),), hostnames=("own.example",))
    mesh = g.view(*MESH, OPEN, g.open_gateway("edge", own), g.listener_set("set", other), route)
    (problem,) = found(mesh, Code.WITHOUT_REQUESTS)
    assert (problem.field, problem.value) == ("spec.parentRefs[0]", "default/set")
    wide = replace(route, hostnames=("*.example",))
    mesh = g.view(*MESH, OPEN, g.open_gateway("edge", own), g.listener_set("set", other), wide)
    assert found(mesh, Code.WITHOUT_REQUESTS, Code.ROUTE_NOT_ACCEPTED) == []
