"""Tests of pod templates: no endpoints and no identities yet, but lint checks policy for them."""

import pytest

from catalog.lint.problems import Linter, problems
from catalog.policy.access import may_call
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.workloads import backing
from catalog.store.edits import Edits
from catalog.store.inventory import by_identity
from catalog.store.inventory import templates as templates_in
from catalog.store.view import View
from meshwright.delivery.problems import AllProblems
from meshwright.mesh.kinds import POD
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import WorkloadPort
from tests.meshes import values as a

WEB = WorkloadPort(Port(8080), "web")
MESH = (
    a.service("shop", a.port(80, "web")),
    a.deployment("shop", WEB),
    a.deployment("buyer"),
    a.route_group("books", a.match("books", "/books")),
    a.target("t", "buyer", "shop", a.http("books")),
)
TO_COME = ("info", "MW2025", "Service default/shop", "app=shop")


def _said(view: View) -> list[tuple[str, str, str, str]]:
    return [
        (problem.severity.value, problem.code, str(problem.key), problem.value) for problem in problems(view)
    ]


def test_pod_template_is_no_endpoint_and_no_caller() -> None:
    """A Deployment without pods gives no endpoint, workload, identity or permission, only an info."""
    view = a.view(*MESH)
    shop = view.services[a.service_key("shop")]
    assert endpoints(view, shop.key, shop.ports[0]) == ()
    assert (dict(view.workloads), backing(view, shop.key), dict(by_identity(view))) == ({}, (), {})
    assert not may_call(view, a.identity("thief"), a.identity("shop"), Port(8080), Protocol.HTTP)
    assert _said(view) == [TO_COME]


def _named(name: str, *sources: str) -> TrafficTarget:
    return TrafficTarget(
        a.policy_key(name),
        a.identity("shop"),
        tuple(a.identity(source) for source in sources),
        (a.http("books"),),
    )


@pytest.mark.parametrize(
    ("things", "expected"),
    [
        ((_named("u", "other"),), [("warning", "MW2008", "TrafficTarget default/u", "default/other")]),
        (
            (a.deployment("clerk"), a.deployment("porter"), _named("u", "buyer", "clerk", "porter")),
            [
                ("warning", "MW2054", "TrafficTarget default/u", "3"),
                ("warning", "MW2056", "TrafficTarget default/t", "default/buyer"),
            ],
        ),
        (
            (a.tcp_route("db", 5432), a.target("u", "buyer", "shop", a.tcp("db"))),
            [("warning", "MW2055", "TrafficTarget default/u", "")],
        ),
        (
            (a.deployment("v2", WEB), a.service("v2"), a.split("s", "shop", ("shop", 1), ("v2", 1))),
            [("warning", "MW2017", "TrafficSplit default/s", "default/v2")],
        ),
        (
            (a.service("admin", a.port(80, "admin"), app="shop"),),
            [("warning", "MW2020", "Service default/admin", "admin")],
        ),
        (
            (a.service("none", app="sop"),),
            [("warning", "MW2020", "Service default/none", "app=sop")],
        ),
    ],
)
def test_problems_are_found_before_any_pod_runs(
    things: tuple[object, ...], expected: list[tuple[str, str, str, str]]
) -> None:
    """Policy for templates is checked as if their pods were running."""
    result = _said(a.view(*MESH, *things))
    assert sorted(item for item in result if item[0] != "info") == expected


def test_deployment_name_in_place_of_its_account_is_explained() -> None:
    """The problem of a target for the name of a Deployment names the Deployment's ServiceAccount."""
    view = a.view(
        a.service("shop"), a.deployment("shop", WEB, account="keeper"), a.deployment("buyer"), *MESH[3:]
    )
    (problem,) = (item for item in problems(view) if item.code == "MW2007")
    assert problem.expected.endswith("(Deployment default/shop has the ServiceAccount default/keeper).")


def test_problems_follow_pods_and_deployments() -> None:
    """MW2025 ends when a pod appears, and returns when only the Deployment is left.

    Without both, the Service has MW2020 and the target MW2007.
    """
    view = a.view(*MESH)
    kept, linter = AllProblems(), Linter(view)
    pod = a.workload("shop", "10.0.0.1", WEB)

    def said(*things: object) -> list[tuple[str, str]]:
        objects = {a.object_key(item): _sourced(item) for item in things}
        view.apply(view.edits_to(Edits(objects)))
        kept.report_lint(linter.looks())
        assert kept.all() == problems(View.build(objects, view.settings))
        return [(problem.code, str(problem.key)) for problem in kept.all()]

    assert said(*MESH) == [("MW2025", "Service default/shop")]
    assert said(*MESH, pod) == []
    assert said(*MESH) == [("MW2025", "Service default/shop")]
    assert said(MESH[0], *MESH[2:]) == [
        ("MW2007", "TrafficTarget default/t"),
        ("MW2020", "Service default/shop"),
    ]
    assert said(MESH[0], MESH[1], *MESH[3:]) == [
        ("MW2008", "TrafficTarget default/t"),
        ("MW2025", "Service default/shop"),
    ]


def test_template_becomes_a_workload_when_the_pod_gets_an_address() -> None:
    """Template and workload have the same key, so each replaces the other completely."""
    key = ObjectKey(POD, a.identity("shop").namespace, "shop")
    template, pod = a.deployment("shop", WEB), a.workload("shop", "10.0.0.1", WEB)
    view = a.view()
    for value, templates in ((template, 1), (pod, 0), (template, 1)):
        objects = {key: SourcedObject(key, value, InFile("test"))}
        view.apply(view.edits_to(Edits(objects)))
        assert (len(templates_in(view)), len(view.workloads)) == (templates, 1 - templates)


def _sourced(thing: object) -> SourcedObject:
    return next(iter(a.view(thing).sourced.values()))
