"""Tests of two kinds with one name in different API groups: neither is taken for the other."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

import catalog.store.view
from catalog.explain import explain
from catalog.lint.problems import problems
from catalog.oracle.decide import Decision, Request, decide
from catalog.policy.provenance import InputObject, made_from
from catalog.policy.values.parts import WholePolicy
from catalog.relations.groups import groups
from catalog.store.edits import Edits
from catalog.store.view import IN_VIEW, View, kind
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import (
    DEPLOYMENT,
    HTTP_ROUTE_GROUP,
    MESH_CONFIG,
    NAMESPACE,
    SERVICE,
    TCP_ROUTE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    Kind,
)
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

GROUP = "gateway.example.net"
OTHER = InFile("other.yaml")
THINGS = {
    SERVICE: a.service("shop", a.port(80), a.port(3306, 3306, Protocol.TCP)),
    HTTP_ROUTE_GROUP: a.route_group("all", a.match("all", "/.*")),
    TCP_ROUTE: a.tcp_route("db", 3306, 8080),
    TRAFFIC_TARGET: a.target("t", "buyer", "shop", a.http("all"), a.tcp("db")),
    TRAFFIC_SPLIT: a.split("s", "shop", ("shop-v2", 1)),
    NAMESPACE: a.namespace("default", scope=a.narrowed("default/shop", "default/shop-v2")),
    MESH_CONFIG: MeshConfig(permissive=False),
    DEPLOYMENT: a.deployment("later"),
}
BESIDES = (
    a.service("shop-v2", a.port(80), a.port(3306, 3306, Protocol.TCP), app="shop"),
    a.target("u", "buyer", "later", a.tcp("db")),
    a.workload("shop", "10.0.0.1"),
    a.workload("buyer", "10.0.0.2"),
)
REQUESTS = [
    Request(a.identity("buyer"), a.service_key("shop"), Port(80), "GET", "/books"),
    Request(a.identity("buyer"), a.service_key("shop"), Port(3306)),
]


@dataclass(frozen=True)
class Theirs:
    """An object of another API group with the name of one of ours."""

    key: PolicyKey


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare the kind of another API group, like the Gateway API's TCPRoute, for each test."""
    monkeypatch.setattr(catalog.store.view, "_kinds", dict(catalog.store.view._kinds))
    monkeypatch.setattr(IN_VIEW, "_declared", list(IN_VIEW._declared))
    kind(Theirs, Kind("TCPRoute", GROUP), "theirs", lambda value: value.key)


def _mesh() -> View:
    return a.view(*THINGS.values(), *BESIDES)


def _put_theirs(mesh: View, key: ObjectKey) -> ObjectKey:
    """Add an object of another group beside one of ours, with the same kind, namespace and name."""
    theirs = ObjectKey.from_name(Kind(key.kind.name, GROUP), key)
    value = Theirs(PolicyKey(key.namespace or Namespace("default"), key.name))
    mesh.apply(Edits({theirs: SourcedObject(theirs, value, OTHER)}))  # type: ignore[arg-type]
    return theirs


def _everything(mesh: View) -> tuple[object, ...]:
    """Return problems, decisions, explanations, and the objects that policies are made from."""
    return (
        problems(mesh),
        [decide(mesh, request) for request in REQUESTS],
        [explain(mesh, request) for request in REQUESTS],
        _made_from(mesh),
    )


def _made_from(mesh: View) -> list[tuple[InputObject, ...]]:
    return [made_from(mesh, group, WholePolicy()) for group in groups(mesh)]


@pytest.mark.parametrize("of", THINGS, ids=str)
def test_object_of_another_group_changes_nothing(of: Kind) -> None:
    """Problems, decisions and explanations stay the same, so they mention neither the object nor its file."""
    mesh = _mesh()
    before = _everything(mesh)
    ours = a.object_key(THINGS[of])
    theirs = _put_theirs(mesh, ours)
    assert mesh.sourced[ours].origin.order[0] == "test"
    assert mesh.sourced[theirs].origin == OTHER
    assert _everything(mesh) == before


@pytest.mark.parametrize("of", THINGS, ids=str)
def test_object_of_another_group_does_not_replace_a_deleted_one(of: Kind) -> None:
    """After our object is deleted, the mesh is as if it had never had that object."""
    mesh = _mesh()
    never = _mesh()
    ours = a.object_key(THINGS[of])
    theirs = _put_theirs(mesh, ours)
    mesh.apply(Edits({ours: None}))
    never.apply(Edits({ours: None}))
    assert ours not in mesh.sourced
    assert theirs in mesh.sourced
    assert _everything(mesh) == _everything(never)


def _answers(mesh: View) -> list[Decision]:
    return [decide(mesh, request) for request in REQUESTS]


CONTROLS: dict[Kind, Callable[[View], object]] = {
    SERVICE: _answers,
    HTTP_ROUTE_GROUP: _answers,
    TCP_ROUTE: _answers,
    TRAFFIC_TARGET: _answers,
    TRAFFIC_SPLIT: _answers,
    NAMESPACE: _made_from,
    MESH_CONFIG: _made_from,
    DEPLOYMENT: problems,
}


@pytest.mark.parametrize("of", THINGS, ids=str)
def test_deleted_object_changes_the_result(of: Kind) -> None:
    """Control of the tests above: each deleted object changes decisions, problems or policies."""
    mesh = _mesh()
    before = CONTROLS[of](mesh)
    mesh.apply(Edits({a.object_key(THINGS[of]): None}))
    assert CONTROLS[of](mesh) != before
