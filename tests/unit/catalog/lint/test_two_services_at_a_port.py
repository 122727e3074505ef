"""Tests of two Services with different protocols at one port of a workload: effect and problem."""

from dataclasses import replace

import pytest

from catalog.explain import explain
from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.oracle.decide import Answer, Request
from catalog.store.view import View
from meshwright.mesh.names import Port
from meshwright.mesh.problems.problem import Severity
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import WorkloadPort
from tests.meshes import values as a

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
ALLOWED = (
    a.route_group("all", a.match("all")),
    a.tcp_route("raw"),
    a.target("t", "client", "shop", a.http("all"), a.tcp("raw")),
)


def _mesh(name: str, ages: tuple[str, str], *ports: WorkloadPort) -> View:
    """Return a mesh with Service `shop` (HTTP) and another one for TCP at the same port, of these ages."""
    shop = replace(a.service("shop"), created=ages[0])
    other = replace(a.service(name, a.port(443, 8080, Protocol.TCP), app="shop"), created=ages[1])
    client = a.workload("client", "10.0.0.2")
    return a.view(
        shop, other, a.workload("shop-1", "10.0.0.1", *ports, app="shop", account="shop"), client, *ALLOWED
    )


def _said(view: View) -> list[tuple[str, str, str, str]]:
    result = [problem for problem in problems(view) if problem.code == Code.PROTOCOL_OVERRULED.value]
    assert all(problem.severity is Severity.ERROR for problem in result)
    return [(str(problem.key), problem.field, problem.value, problem.expected) for problem in result]


def _explained(view: View, name: str, port: int) -> tuple[Answer, str]:
    """Return the answer to a call, and the step with the reason of its failure (empty without one)."""
    explanation = explain(view, Request(a.identity("client"), a.service_key(name), Port(port)))
    why = [step.text for step in explanation.steps if " serves its port " in step.text]
    return explanation.decision.answer, "".join(why)


def _fails(at: int, called: str, taken: str, holder: str) -> str:
    return (
        f"Calls to port {at} as {called} fail, because port 8080 of the workloads is served as {taken}. That "
        f"protocol is declared by default/{holder} or by the workload; of several Services the oldest "
        "decides. Set the same appProtocol in all of them, or use another target port."
    )


def _why(called: str, taken: str, holder: str) -> str:
    return (
        f"Workload default/shop-1 serves its port 8080 as {taken}, as default/{holder} declares "
        f"(of several Services the oldest decides), so calls as {called} fail (MW2026)."
    )


@pytest.mark.parametrize("name", ["front", "zfront"])
def test_newer_service_is_reported_and_the_older_one_works(name: str) -> None:
    """The older Service decides the protocol, whichever comes first by name."""
    view = _mesh(name, (OLD, NEW))
    assert _said(view) == [
        (f"Service default/{name}", "spec.ports", "443", _fails(443, "tcp", "http", "shop"))
    ]
    assert _explained(view, "shop", 80) == (Answer.ALLOWED, "")
    assert _explained(view, name, 443) == (Answer.REFUSED, _why("tcp", "http", "shop"))


@pytest.mark.parametrize("name", ["front", "zfront"])
def test_http_service_is_reported_if_the_tcp_service_is_older(name: str) -> None:
    """The TCP Service decides if it is older, or the only one with a known age."""
    for ages in ((NEW, OLD), ("", OLD)):
        view = _mesh(name, ages)
        assert _said(view) == [("Service default/shop", "spec.ports", "80", _fails(80, "http", "tcp", name))]
        assert _explained(view, "shop", 80) == (Answer.REFUSED, _why("http", "tcp", name))
        assert _explained(view, name, 443) == (Answer.ALLOWED, "")


@pytest.mark.parametrize("created", ["", OLD])
def test_name_decides_between_services_of_equal_or_unknown_age(created: str) -> None:
    """Files have no ages, and objects of one `kubectl apply` have equal ones; the first name decides."""
    first = _mesh("front", (created, created))
    assert [item[0] for item in _said(first)] == ["Service default/shop"]
    assert _explained(first, "shop", 80)[0] is Answer.REFUSED
    assert _explained(first, "front", 443)[0] is Answer.ALLOWED
    last = _mesh("zfront", (created, created))
    assert [item[0] for item in _said(last)] == ["Service default/zfront"]
    assert _explained(last, "shop", 80)[0] is Answer.ALLOWED
    assert _explained(last, "zfront", 443)[0] is Answer.REFUSED


def test_protocol_declared_by_the_workload_precedes_every_age() -> None:
    """The workload declares HTTP, so the TCP Service fails although it is older and first by name."""
    view = _mesh("front", (NEW, OLD), WorkloadPort(Port(8080), "", Protocol.HTTP))
    assert [item[0] for item in _said(view)] == ["Service default/front"]
    assert _explained(view, "shop", 80) == (Answer.ALLOWED, "")
    answer, why = _explained(view, "front", 443)
    assert answer is Answer.REFUSED
    taken = "serves its port 8080 as http, as the workload declares"
    assert why == f"Workload default/shop-1 {taken}, so calls as tcp fail (MW2026)."


def test_two_services_of_one_protocol_have_no_problem() -> None:
    """A second Service with the same protocol is a usual alias of the same program."""
    pair = (a.service("shop"), a.service("alias", a.port(81), app="shop"))
    view = a.view(*pair, a.workload("shop-1", "10.0.0.1", app="shop", account="shop"), *ALLOWED)
    assert _said(view) == []
