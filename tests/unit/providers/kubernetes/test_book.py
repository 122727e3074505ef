"""Tests of the state of a cluster's objects: last good forms, and namespaces that join and leave the mesh."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.kube.reflector.object_cache import Item
from meshwright.mesh.kinds import (
    ENDPOINT_SLICE,
    GATEWAY,
    GATEWAY_CLASS,
    MESH_CONFIG,
    MESH_ROOT_CERTIFICATE,
    NAMESPACE,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    TRAFFIC_TARGET,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.providers.kubernetes.book import Book
from meshwright.providers.kubernetes.projection import projected
from meshwright.providers.kubernetes.scope import Scope
from tests.unit.providers.kubernetes import objects

MONITORED = {"openservicemesh.io/monitored-by": "osm"}
EVERYTHING = Book("east", Scope.from_settings())
_VERSIONS = {
    TRAFFIC_TARGET: "access.smi-spec.io/v1alpha3",
    WORKLOAD: "meshwright.dev/v1alpha1",
    MESH_CONFIG: "config.openservicemesh.io/v1alpha2",
    MESH_ROOT_CERTIFICATE: "config.openservicemesh.io/v1alpha2",
    ENDPOINT_SLICE: "discovery.k8s.io/v1",
    GATEWAY: "gateway.networking.k8s.io/v1",
    GATEWAY_CLASS: "gateway.networking.k8s.io/v1",
}


def key(kind: Kind, name: str, namespace: str = "shop") -> ObjectKey:
    """Return an object's key."""
    return ObjectKey(kind, Namespace("" if kind == NAMESPACE else namespace), name)


def item(kind: Kind, raw: dict[str, Any], version: str = "1") -> Item[str]:
    """Return an object as a reflector stores it."""
    return Item(version, projected(kind, _VERSIONS.get(kind, "v1"), raw))


def names(book: Book) -> list[str]:
    """Return the keys of the objects in force."""
    return [str(object_key) for object_key in book.state.objects()]


def told(book: Book, **namespaces: dict[str, str] | None) -> Book:
    """Return the book with these Namespaces; None removes one."""
    changes = {
        key(NAMESPACE, name): None if labels is None else item(NAMESPACE, objects.namespace(name, **labels))
        for name, labels in namespaces.items()
    }
    return book.with_namespaces(changes).taken(changes)


def test_objects_are_in_force_under_their_keys_with_their_versions() -> None:
    """Two objects that differ only in their namespace are two objects."""
    one, other = key(SERVICE, "shop"), key(SERVICE, "shop", "books")
    book = EVERYTHING.taken(
        {
            one: item(SERVICE, objects.service("shop")),
            other: item(SERVICE, objects.service("shop", "books"), "2"),
        }
    )
    assert names(book) == ["Service books/shop", "Service shop/shop"]
    assert str(book.state.objects()[other].origin) == "east (resourceVersion 2)"
    assert names(book.taken({one: None})) == ["Service books/shop"]
    vm = key(WORKLOAD, "vm")
    sourced_object = book.taken({vm: item(WORKLOAD, objects.workload("vm"), "3")}).state.objects()[vm]
    assert sourced_object.origin == InCluster("east", "3", 1)  # the generation is needed to write the status


def test_endpoint_slice_without_a_service_label_is_ignored() -> None:
    """Multi-cluster services have slices with another label, so this is no problem."""
    slices, raw = key(ENDPOINT_SLICE, "shop-abc"), objects.endpoint_slice("shop", "10.0.0.1")
    ours = EVERYTHING.taken({slices: item(ENDPOINT_SLICE, raw)})
    assert names(ours) == ["EndpointSlice shop/shop-abc"]
    raw["metadata"]["labels"] = {"multicluster.kubernetes.io/service-name": "shop"}
    for before in (ours, EVERYTHING):
        book = before.taken({slices: item(ENDPOINT_SLICE, raw, "2")})
        assert (names(book), book.state.problems()) == ([], ())


def test_change_of_unread_fields_changes_nothing() -> None:
    """A new status or managed fields leave the book and even the object's origin unchanged."""
    pod = key(POD, "shop-1")
    first = EVERYTHING.taken({pod: item(POD, objects.pod("shop-1"))})
    busy = objects.pod("shop-1", containerStatuses=[{"restartCount": 9}])
    busy["metadata"]["managedFields"] = []
    assert first.taken({pod: item(POD, busy, "2")}) is first
    moved = first.taken({pod: item(POD, objects.pod("shop-1", "10.0.0.2"), "3")})
    assert moved.state.objects().since(first.state.objects()).keys() == {pod}


@pytest.mark.parametrize(
    ("one", "spec"),
    [
        (
            ObjectKey(GATEWAY, Namespace("shop"), "edge"),
            {
                "gatewayClassName": "meshwright",
                "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
            },
        ),
        (
            ObjectKey(GATEWAY_CLASS, Namespace(""), "edge"),
            {"controllerName": "meshwright.dev/gateway-controller"},
        ),
    ],
    ids=str,
)
def test_gateway_and_class_that_cannot_be_read_keep_their_last_good_form(
    one: ObjectKey, spec: dict[str, Any]
) -> None:
    """A version that no reader knows leaves them as they were, as it leaves other objects of a cluster."""
    raw = {"metadata": {"name": one.name, "namespace": one.namespace}, "spec": spec}
    good = EVERYTHING.taken({one: item(one.kind, raw)})
    unknown = Item("2", projected(one.kind, "gateway.networking.k8s.io/v99", raw))
    bad = good.taken({one: unknown})
    assert dict(bad.state.objects()) == {one: replace(good.state.objects()[one], stale=True)}
    assert bad.taken({one: None}).state == EVERYTHING.state


def test_invalid_object_keeps_its_last_good_form() -> None:
    """A corrected object is fresh and a deleted one is gone.

    An object that was never valid is not in force.
    """
    one = key(TRAFFIC_TARGET, "t")
    good = EVERYTHING.taken({one: item(TRAFFIC_TARGET, objects.target("t"))})
    broken = objects.target("t")
    broken["spec"]["sources"] = {"kind": 7}
    bad = good.taken({one: item(TRAFFIC_TARGET, broken, "2")})
    assert bad.state.objects()[one].stale
    assert [(problem.code, str(problem.origin)) for problem in bad.state.problems()] == [
        ("MW1010", "east (resourceVersion 2)"),
        ("MW1107", "east (resourceVersion 2)"),
    ]
    assert not bad.taken({one: item(TRAFFIC_TARGET, objects.target("t"), "3")}).state.objects()[one].stale
    assert bad.taken({one: None}).state == EVERYTHING.state
    never = EVERYTHING.taken({one: item(TRAFFIC_TARGET, broken)})
    assert (names(never), [problem.code for problem in never.state.problems()]) == ([], ["MW1010"])


def test_workload_with_the_name_of_a_pod_is_a_problem() -> None:
    """Both would be the same workload, so the Pod is in force."""
    book = EVERYTHING.taken(
        {
            key(WORKLOAD, "w"): item(WORKLOAD, objects.workload("w")),
            key(POD, "w"): item(POD, objects.pod("w")),
        }
    )
    assert names(book) == ["Pod shop/w"]
    assert [problem.code for problem in book.state.problems()] == ["MW1106"]


def test_pending_and_finished_pods_are_no_problem() -> None:
    """These states are normal and are no user's mistake."""
    waiting = objects.pod("a", podIP=None, podIPs=[], phase="Pending")
    ended = objects.pod("b", phase="Succeeded")
    book = EVERYTHING.taken({key(POD, "a"): item(POD, waiting), key(POD, "b"): item(POD, ended)})
    assert book.state.problems() == ()
    assert names(book) == ["Pod shop/a"]
    assert type(book.state.objects()[key(POD, "a")].value).__name__ == "PodTemplate"


def test_traffic_target_with_5000_sources_is_read() -> None:
    """The size of a single object is no problem."""
    raw = objects.target("t")
    raw["spec"]["sources"] = [
        {"kind": "ServiceAccount", "name": f"a{number}", "namespace": "shop"} for number in range(5000)
    ]
    book = EVERYTHING.taken({key(TRAFFIC_TARGET, "t"): item(TRAFFIC_TARGET, raw)})
    assert names(book) == ["TrafficTarget shop/t"]
    assert book.state.problems() == ()


def test_label_selector_admits_objects_of_matching_namespaces() -> None:
    """An object may arrive before its Namespace, and leaves the mesh once its Namespace loses the labels."""
    book = Book("east", Scope.from_settings(labels="openservicemesh.io/monitored-by=osm"))
    account = {key(SERVICE_ACCOUNT, "a"): item(SERVICE_ACCOUNT, objects.account("a"))}
    early = book.taken(account)
    assert names(early) == []
    inside = told(early, shop=MONITORED)
    assert inside.moved(early) == {"shop"}
    inside = inside.taken(account)
    assert names(inside) == ["Namespace shop", "ServiceAccount shop/a"]
    for labels in ({}, None, MONITORED | {"openservicemesh.io/ignore": "true"}):
        outside = told(inside, shop=labels)
        assert outside.moved(inside) == {"shop"}
        assert names(outside.taken(account)) == []
    more = told(inside, shop=MONITORED | {"more": "yes"})
    assert more.moved(inside) == frozenset()


def test_osm_injection_annotation_does_not_change_which_pods_have_a_sidecar() -> None:
    """The annotation is for the injector; a running Pod has a sidecar if it has the label with its UUID."""
    annotation = "openservicemesh.io/sidecar-injection"
    for answer in ("enabled", "disabled", "no such word"):
        space, pod, bare = objects.namespace("shop"), objects.pod("a"), objects.pod("b", "10.0.0.2")
        for element in (space, pod, bare):
            element["metadata"]["annotations"] = {annotation: answer}
        del bare["metadata"]["labels"]["osm-proxy-uuid"]
        book = EVERYTHING.taken(
            {
                key(NAMESPACE, "shop"): item(NAMESPACE, space),
                key(POD, "a"): item(POD, pod),
                key(POD, "b"): item(POD, bare),
            }
        )
        messages = {problem.code for problem in book.state.problems()}
        assert messages == ({"MW1029"} if answer == "no such word" else set())
        uuids = [getattr(book.state.objects()[key(POD, name)].value, "uuid", "") for name in ("a", "b")]
        assert uuids == ["a-uuid", None]


def test_mesh_config_is_read_only_in_the_control_plane_namespace() -> None:
    """That namespace need not be in the mesh, as in OSM, and its other objects are ignored."""
    book = Book("east", Scope.from_settings(labels="openservicemesh.io/monitored-by=osm", home="osm-system"))
    config = {"metadata": {"name": "osm-mesh-config", "namespace": "osm-system"}, "spec": {}}
    result = book.taken(
        {
            key(MESH_CONFIG, "osm-mesh-config", "osm-system"): item(MESH_CONFIG, config),
            key(MESH_CONFIG, "x", "other"): item(
                MESH_CONFIG, {"metadata": {"name": "x", "namespace": "other"}, "spec": {}}
            ),
            key(SERVICE, "osm", "osm-system"): item(SERVICE, objects.service("osm", "osm-system")),
        }
    )
    assert names(result) == ["MeshConfig osm-system/osm-mesh-config"]


@pytest.mark.parametrize("home", ["", "osm-system"])
def test_mesh_root_certificate_is_read_only_in_the_control_plane_namespace(home: str) -> None:
    """One elsewhere has no effect and is problem MW1114, so that write access there changes no trust."""
    spec = {"provider": {"tresor": {"ca": {"secretRef": {"name": "r"}}}}}
    places = ["osm-system", "shop"]
    changes = {
        key(MESH_ROOT_CERTIFICATE, "r", place): item(
            MESH_ROOT_CERTIFICATE, {"metadata": {"name": "r", "namespace": place}, "spec": spec}
        )
        for place in places
    }
    book = Book("east", Scope.from_settings(namespaces=["shop"], home=home)).taken(changes)
    answer = [
        (problem.code, str(problem.key), problem.field, problem.value) for problem in book.state.problems()
    ]
    if not home:  # the control plane's namespace is unknown
        assert (names(book), answer) == (["MeshRootCertificate shop/r"], [])
        return
    assert names(book) == ["MeshRootCertificate osm-system/r"]
    assert answer == [("MW1114", "MeshRootCertificate shop/r", "metadata.namespace", "shop")]


def test_field_of_an_older_version_keeps_its_meaning() -> None:
    """The CRD has no conversion, so a `port` in a v1alpha3 object narrows as in v1alpha2."""
    account = {"kind": "ServiceAccount", "name": "store"}
    spec = {"destination": {**account, "port": 80}, "rules": [], "sources": [account]}
    raw = {"metadata": {"name": "buy", "namespace": "shop"}, "spec": spec}
    book = EVERYTHING.taken({key(TRAFFIC_TARGET, "buy"): item(TRAFFIC_TARGET, raw)})
    (sourced_object,) = book.state.objects().values()
    assert isinstance(sourced_object.value, TrafficTarget)
    assert sourced_object.value.port == 80
    assert "MW1033" in {problem.code for problem in book.state.problems()}


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(["Service", "Pod", "Target", "Namespace"]),
        st.sampled_from(["good", "other", "bad", "gone", "labelled", "ignored"]),
    ),
    max_size=12,
)


def _step(space: str, kind: str, how: str) -> tuple[ObjectKey, dict[str, Any] | None]:
    match kind:
        case "Namespace":
            labels = {"labelled": MONITORED, "ignored": MONITORED | {"openservicemesh.io/ignore": ""}}
            raw = None if how == "gone" else objects.namespace(space, **labels.get(how, {}))
            return key(NAMESPACE, space), raw
        case "Service":
            answer: dict[str, dict[str, Any]] = {"other": {"clusterIP": "10.96.0.2"}, "bad": {"ports": 7}}
            more = answer.get(how, {})
            return key(SERVICE, "s", space), None if how == "gone" else objects.service("s", space, **more)
        case "Pod":
            address = {"other": "10.0.0.2", "bad": "no address"}.get(how, "10.0.0.1")
            return key(POD, "p", space), None if how == "gone" else objects.pod("p", address, space)
        case _:
            raw = objects.target("t", namespace=space)
            raw["spec"]["rules"] = {"other": [], "bad": "all"}.get(how, raw["spec"]["rules"])
            return key(TRAFFIC_TARGET, "t", space), None if how == "gone" else raw


@given(_STEPS, st.booleans())
def test_state_after_steps_equals_the_state_built_at_once(
    steps: list[tuple[str, str, str]], with_selector: bool
) -> None:
    """Only last good forms differ, because a new book never saw them."""
    labels = "openservicemesh.io/monitored-by=osm" if with_selector else ""
    empty = book = Book("east", Scope.from_settings(labels=labels))
    now: dict[ObjectKey, Item[str]] = {}
    for (where, raw), number in zip(itertools.starmap(_step, steps), itertools.count(), strict=False):
        before = book
        result = None if raw is None else item(where.kind, raw, str(number))
        now.pop(where, None)
        if result is not None:
            now[where] = result
        book = book.with_namespaces({where: result})
        moved = book.moved(before)
        members = {
            object_key: one
            for object_key, one in now.items()
            if (object_key.namespace or object_key.name) in moved
        }
        book = book.taken({**members, where: result})
    fresh = empty.with_namespaces(now).taken(now)
    stale = {object_key for object_key, one in book.state.objects().items() if one.stale}
    assert {object_key: one.value for object_key, one in fresh.state.objects().items()} == {
        object_key: one.value for object_key, one in book.state.objects().items() if object_key not in stale
    }
    assert {problem.code for problem in fresh.state.problems()} <= {
        problem.code for problem in book.state.problems()
    }
