"""Tests that objects of a namespace have no effect on proxies of another one, except by policy."""

import dataclasses
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.lint.problems import problems
from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import groups
from catalog.store.edits import Edits
from catalog.store.inventory import holder_of
from catalog.store.view import MeshSettings, View
from meshwright.delivery.proxies.identity import contradiction
from meshwright.mesh.gateway.filters import Filters
from meshwright.mesh.gateway.routes import GRPCRoute, HTTPRoute
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import EGRESS, MESH_CONFIG, NAMESPACE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import MeshObject, NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.service import Service
from tests.meshes import values as a
from tests.meshes.random_meshes import random_mesh
from tests.meshes.resources import resources
from tests.tools.hypothesis_profiles import examples
from xds.protocol.resources.resource import Resource

OURS, THEIRS = Namespace("one"), ("another", "zone")
"""Theirs come before ours, and after it: of two that claim one thing the first by key has it."""


@settings(max_examples=examples(4, fresh=100), deadline=None)
@given(st.integers(0, 2**32))
def test_objects_of_another_namespace_change_nothing(seed: int) -> None:
    """The objects have the same names, addresses and UUIDs, and are added one by one."""
    dice = random.Random(seed)  # noqa: S311 - dice
    view = View.build(_ours(dice), MeshSettings())
    before = _served(view)
    theirs = _theirs(dice, dice.choice(THEIRS))
    for key in sorted(theirs):
        view.apply(Edits({key: theirs[key]}))
        assert _served(view) == before, theirs[key]


def test_random_meshes_have_proxies_and_claims_that_could_change() -> None:
    """Both interceptions, endpoints and repeated UUIDs occur, so that the test above can fail."""
    kinds, twice = set[str](), 0
    for seed in range(12):
        dice = random.Random(seed)  # noqa: S311 - dice
        ours, theirs = _ours(dice), _theirs(dice, THEIRS[0])
        view = View.build(ours, MeshSettings())
        for group in groups(view):
            kinds.add(type(group.interception).__name__)
            kinds.update(
                resource.type_url.rpartition(".")[2] for resource in resources(proxy_policy(view, group))
            )
        claims = [
            {getattr(sourced_object.value, "uuid", None) for sourced_object in objects.values()} - {None}
            for objects in (ours, theirs)
        ]
        twice += bool(claims[0] & claims[1])
    assert kinds >= {"Transparent", "Explicit", "Cluster", "ClusterLoadAssignment", "Listener"}
    assert twice >= 2


def test_uuid_in_two_namespaces_is_two_sidecars() -> None:
    """Both sidecars are served, and neither contradicts the other's certificate."""
    view = a.view(
        a.workload("shop", "10.0.0.1", namespace="shop"), a.workload("shop", "10.0.0.2", namespace="attic")
    )
    names = [ProxyName.parse(f"shop-uuid.shop.{item}") for item in ("attic", "shop")]
    assert sorted(name for group in groups(view).values() for name in group) == names
    holders = [holder_of(view, proxy_name) for proxy_name in names]
    assert [str(holder.key) for holder in holders if holder is not None] == ["attic/shop", "shop/shop"]
    assert [contradiction(proxy_name, view) for proxy_name in names] == ["", ""]


def test_proxy_without_a_workload_is_not_refused_for_another_namespace() -> None:
    """Its stream is kept unless a workload of its own namespace has its UUID with another name."""
    view = a.view(a.workload("shop", "10.0.0.2", namespace="attic"))
    name = ProxyName.parse("shop-uuid.shop.shop")
    assert (holder_of(view, name), contradiction(name, view)) == (None, "")


def test_certificate_of_another_service_gets_nothing_of_the_workload() -> None:
    """The whole proxy name counts, so the service in a certificate must be that of the workload."""
    view = a.view(a.workload("shop", "10.0.0.1"))
    name = ProxyName.parse("shop-uuid.till.default")
    assert holder_of(view, name) is None
    assert (
        contradiction(name, view)
        == "workload default/shop has this UUID, and its proxy is shop-uuid.shop.default"
    )


def test_listener_address_of_two_namespaces_is_used_by_both_and_reported() -> None:
    """A claim never removes another namespace's listener, because the two may be on different machines."""
    view = a.view(
        a.service("shop", namespace="attic"),
        a.service("shop", namespace="shop"),
        *(
            a.workload("shop", "10.0.0.1", namespace=item, interception=a.explicit("127.0.0.1"))
            for item in ("attic", "shop")
        ),
    )
    listening = [policy.inbound[0].listen for policy in (proxy_policy(view, group) for group in groups(view))]
    assert list(map(str, listening)) == ["10.0.0.1:8080"] * 2
    (problem,) = [item for item in problems(view) if item.code == "MW2032"]
    held = (
        "Another listener (inbound 10.0.0.1:8080 of workload attic/shop) has the same address and port in "
        "another namespace. Both sidecars listen, and on one machine the kernel shares the connections "
        "between them. Choose another address or port."
    )
    assert (str(problem.key), problem.expected) == ("Workload shop/shop", held)


def _served(view: View) -> dict[ProxyName, tuple[Resource, ...]]:
    """Return the resources of each proxy of our namespace."""
    return {
        name: resources(proxy_policy(view, group))
        for group, names in groups(view).items()
        for name in names
        if name.namespace == OURS
    }


def _ours(dice: random.Random) -> dict[ObjectKey, SourcedObject]:
    """Make a namespace that refers to no other one.

    A permissive namespace would be a policy for all callers, so it is left out. Egresses are left out as
    well, because they exclude addresses of every service of the mesh.
    """
    return {
        key: moved
        for key, moved in _of_one_namespace(dice, OURS).items()
        if key.claim.kind not in (EGRESS, MESH_CONFIG, NAMESPACE)
    }


def _theirs(dice: random.Random, namespace: str) -> dict[ObjectKey, SourcedObject]:
    """Make another namespace that is not permissive, because that would be a policy for all callers."""
    return {
        key: dataclasses.replace(sourced_object, value=_modest(sourced_object.value))
        for key, sourced_object in _of_one_namespace(dice, Namespace(namespace)).items()
        if key.claim.kind != MESH_CONFIG
    }


def _modest(value: MeshObject) -> MeshObject:
    """Return an object without a Service's address, because the API server never assigns one twice.

    A redirect of a route is for all callers, so it is left out.
    """
    match value:
        case HTTPRoute(rules=rules):
            kept = tuple(dataclasses.replace(rule, filters=Filters()) for rule in rules)
            return dataclasses.replace(value, rules=kept)
        case GRPCRoute(rules=rules):
            kept = tuple(dataclasses.replace(rule, filters=Filters()) for rule in rules)
            return dataclasses.replace(value, rules=kept)
        case Service():
            return dataclasses.replace(value, cluster_ip=None, other_addresses=())
        case NamespaceObject():
            return dataclasses.replace(value, permissive=False)
        case _:
            return value


def _of_one_namespace(dice: random.Random, namespace: Namespace) -> dict[ObjectKey, SourcedObject]:
    known = random_mesh(dice).known().objects
    return {
        (moved := _moved(sourced_object, namespace)).key: moved
        for sourced_object in known.values()
        if sourced_object is not None
    }


def _moved(value: Any, namespace: Namespace) -> Any:
    """Return a value with this namespace in place of each namespace of the random meshes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _moved(getattr(value, field.name), namespace)
            for field in dataclasses.fields(value)
            if field.init
        }
        return dataclasses.replace(value, **fields)
    if isinstance(value, Kind):  # a tuple, too
        return value
    if isinstance(value, tuple):
        return tuple(_moved(item, namespace) for item in value)
    return namespace if value in ("one", "two") else value
