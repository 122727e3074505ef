"""Tests of permissive mode per namespace: the server's namespace decides."""

from itertools import product

import pytest

from catalog.explain import explain
from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.oracle.decide import Answer, Request, decide
from catalog.policy.group_policy import proxy_policy
from catalog.policy.inbound import access
from catalog.policy.outbound import visible
from catalog.policy.values.inbound import EveryoneInTheMesh, OnlyRules
from catalog.relations.groups import members
from catalog.relations.permissive import is_permissive
from catalog.store.view import View
from meshwright.admin.pages.access import access_pairs
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from tests.meshes import values as a
from tests.tools.observed_values import Pin

SPACES = ("closed", "default", "open")
MESH = (
    *(a.service("shop", namespace=space) for space in SPACES),
    *(a.workload("shop", f"10.0.0.{n}", namespace=space) for n, space in enumerate(SPACES, 1)),
    a.workload("client", "10.0.0.9"),
)
SAID = (a.namespace("open", permissive=True), a.namespace("closed", permissive=False))


def seen(mesh: View) -> list[str]:
    """Return the namespaces whose shop the client's proxy is configured to call."""
    (group,) = (key for key in members(mesh) if key.identity == a.identity("client"))
    return [
        str(outbound_service.upstream).partition("/")[0]
        for outbound_service in proxy_policy(mesh, group).outbound
    ]


@pytest.mark.parametrize(("mesh_wide", "expected"), [(False, ["open"]), (True, ["default", "open"])])
def test_permissive_mode_is_decided_by_the_servers_namespace(mesh_wide: bool, expected: list[str]) -> None:
    """The annotation precedes the MeshConfig for client, server, oracle and the page of access."""
    mesh = a.view(*MESH, *SAID, MeshConfig(permissive=mesh_wide))
    assert seen(mesh) == expected
    assert [service_key.namespace for service_key in visible(mesh, a.identity("client"))] == expected
    assert [space for space in SPACES if is_permissive(mesh, Namespace(space))] == expected
    for space in SPACES:
        open_ = space in expected
        assert access(mesh, a.identity("shop", space), Port(8080), a.HTTP) == (
            EveryoneInTheMesh() if open_ else OnlyRules()
        )
        asked = Request(a.identity("client"), a.service_key("shop", space), Port(80), "GET", "/")
        assert decide(mesh, asked).answer is (Answer.ALLOWED if open_ else Answer.UNREACHABLE)
        assert decide(mesh, Request(None, asked.service, Port(80), "GET", "/")).answer is Answer.REFUSED
    allowed = {
        (row["destination_service"], str(row["by"]))
        for row in access_pairs(mesh)
        if isinstance(row, dict) and row["source"] == "default/client" and row["allowed"]
    }
    by = "MeshConfig (permissive)" if mesh_wide else "Namespace open (permissive)"
    assert allowed == {(f"{space}/shop", f"['{by}']") for space in expected}


def test_without_permissive_mode_or_policy_a_client_sees_no_service() -> None:
    """Negative control: without annotations and a MeshConfig, the client's policy is empty."""
    assert seen(a.view(*MESH)) == []


def test_policy_decides_in_a_namespace_that_is_not_permissive() -> None:
    """In a permissive mesh, such a namespace admits only what its TrafficTargets admit."""
    own = a.target("t", "client", "shop", a.http("get"))
    groups = a.route_group("get", a.match("get", None, "GET"))
    mesh = a.view(*MESH, a.namespace("default", permissive=False), MeshConfig(permissive=True), own, groups)
    answers = [
        decide(mesh, Request(a.identity("client"), a.service_key("shop"), Port(80), method, "/")).answer
        for method in ("GET", "POST")
    ]
    assert answers == [Answer.ALLOWED, Answer.REFUSED]


@pytest.mark.parametrize(("mesh_wide", "own"), list(product((False, True), (None, False, True))))
def test_explanation_names_the_object_that_sets_permissive_mode(mesh_wide: bool, own: bool | None) -> None:
    """It is the Namespace if its annotation overrides the MeshConfig, and else the MeshConfig."""
    answer = () if own is None else (a.namespace("open", permissive=own),)
    mesh = a.view(MeshConfig(permissive=mesh_wide), *answer, *MESH)
    explanation = explain(
        mesh, Request(a.identity("client"), a.service_key("shop", "open"), Port(80), "GET", "/")
    )
    steps = [(step.text, [str(key) for key, _ in step.objects]) for step in explanation.steps]
    of_namespace, of_mesh = ["Namespace open"], ["MeshConfig osm-system/osm-mesh-config"]
    admitted = "every caller with a certificate of the mesh is admitted."
    expected = {
        (False, True): (f"Namespace open is permissive: {admitted}", of_namespace),
        (True, False): (
            "The mesh is permissive, but namespace open is not, so policy decides.",
            of_namespace,
        ),
        (True, True): (f"The mesh is permissive: {admitted}", of_mesh),
        (True, None): (f"The mesh is permissive: {admitted}", of_mesh),
    }
    permissive = [step for step in steps if "permissive" in step[0]]
    assert permissive == [expected[mesh_wide, own]] if (mesh_wide, own) in expected else permissive == []


def test_backends_of_a_permissive_namespace_have_no_problem_of_access() -> None:
    """MW2017 applies only to namespaces in which policy decides."""
    things = (
        *MESH,
        a.service("v2"),
        a.workload("v2", "10.0.0.8"),
        a.split("s", "shop", ("shop", 1), ("v2", 1)),
        a.target("t", "client", "shop", a.http("all")),
        a.route_group("all", a.match("all")),
    )
    codes = [
        {problem.code for problem in problems(a.view(*things, *answer))}
        for answer in ((), (a.namespace("default", permissive=True),))
    ]
    assert [Code.BACKEND_NOT_ALLOWED in code for code in codes] == [True, False]


def test_annotation_of_a_namespace_affects_only_its_own_access() -> None:
    """Other namespaces' access is not computed again when a Namespace changes."""
    mesh = a.view(*MESH, *SAID)
    pins = [Pin(access, mesh, a.identity("shop", space), Port(8080), a.HTTP) for space in SPACES]
    before = [pin.value() for pin in pins]
    mesh.apply(mesh.edits_to(a.view(*MESH, SAID[0], a.namespace("closed", permissive=True)).known()))
    assert [pin.node.stale for pin in pins] == [True, False, False]
    assert [pin.value() for pin in pins] == [EveryoneInTheMesh(), *before[1:]]
    assert ObjectKey.of_namespace("closed") in mesh.sourced
