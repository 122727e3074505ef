"""Lint of routes whose parent is a Gateway that the mesh does not have."""

from dataclasses import replace

import pytest

import catalog.lint.problems
from catalog.lint.codes import Code
from catalog.lint.wording import OR_OUTSIDE
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, SourcedObject
from meshwright.mesh.origins import InCluster
from tests.meshes import gateway as g
from tests.meshes import values as a

WEB = a.service("web", address="10.1.0.2")
OURS = g.gateway("public", namespace="shop")
FOREIGN = g.gateway("istio", namespace="shop", class_name="other")
NAMESPACES = (NamespaceObject(Namespace("shop")), NamespaceObject(Namespace("default")))
GONE = "This Gateway does not exist"
SO = "so the route is not in force at this parent."
END = "Correct the reference, or create the Gateway."


def found(mesh: View) -> list[tuple[str, str, str, str]]:
    """Return severity, field, value and text of the problems with unknown Gateways."""
    return [
        (problem.severity.value, problem.field, problem.value, problem.expected)
        for problem in catalog.lint.problems.problems(mesh)
        if problem.code == Code.UNKNOWN_PARENT_GATEWAY
    ]


def mesh_of(*things: object, parents: tuple[ParentRef, ...], in_cluster: bool = False) -> View:
    """Make a mesh with a route of namespace `shop`."""
    route = g.http_route("route", Rule(), parents=parents, namespace="shop")
    mesh = g.view(*things, route)
    if in_cluster:
        key = g.key_of(route)
        mesh.apply(Edits(objects={key: SourcedObject(key, route, InCluster("east", "1", 1))}))
    return mesh


@pytest.mark.parametrize(
    ("parent", "gateway", "text"),
    [
        (
            g.at("publik"),
            "shop/publik",
            f"{GONE} (did you mean public?), {SO}",
        ),
        (
            g.at("public", namespace="default"),
            "default/public",
            (f"{GONE} (did you mean shop/public?), {OR_OUTSIDE}, {SO}"),
        ),
        (
            g.at("web", namespace="default"),
            "default/web",
            (
                f"{GONE}, {OR_OUTSIDE}, {SO} Service default/web exists: a reference to a Service has "
                "`kind: Service` and an empty `group`."
            ),
        ),
        (
            g.at("edge"),
            "shop/edge",
            f"{GONE}, {SO}",
        ),
    ],
)
def test_parent_that_names_a_missing_gateway_is_a_warning(parent: ParentRef, gateway: str, text: str) -> None:
    """A mesh with a Gateway of its own; the second parent is named, and the first one is good."""
    mesh = mesh_of(WEB, g.CLASS, OURS, parents=(g.at("public"), parent))
    assert found(mesh) == [("warning", "spec.parentRefs[1]", gateway, f"{text} {END}")]


@pytest.mark.parametrize(
    ("parent", "is_found"),
    [
        (g.at("istio"), False),
        (g.at("elsewhere"), False),
        (g.at("istoi"), True),
        (g.at("web", namespace="default"), True),
    ],
)
def test_mesh_without_a_gateway_of_its_own_hears_of_likely_mistakes_alone(
    parent: ParentRef, *, is_found: bool
) -> None:
    """Gateways of other controllers may live in a cluster beside, which this mesh does not read."""
    assert bool(found(mesh_of(WEB, g.FOREIGN_CLASS, FOREIGN, parents=(parent,)))) is is_found


@pytest.mark.parametrize("class_name", ["other", "missing"])
def test_gateway_of_another_controller_that_exists_is_no_problem(class_name: str) -> None:
    """Its controller reports about the route."""
    foreign = replace(FOREIGN, class_name=class_name)
    assert found(mesh_of(g.CLASS, OURS, foreign, parents=(g.at("istio"),))) == []


@pytest.mark.parametrize(
    ("parent", "is_found"),
    [
        (g.at("edge"), True),
        (g.at("edge", namespace="default"), True),
        (g.at("public", namespace="infra"), False),
        (g.at("edge", namespace="infra"), False),
    ],
)
def test_gateway_in_a_namespace_outside_of_the_mesh_may_exist(parent: ParentRef, *, is_found: bool) -> None:
    """In a cluster the control plane reads the Gateways of the mesh's namespaces alone."""
    mesh = mesh_of(*NAMESPACES, g.CLASS, OURS, parents=(parent,), in_cluster=True)
    assert bool(found(mesh)) is is_found
