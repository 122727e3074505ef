"""Tests of the ConfigMap with the mesh's roots: the namespaces that need it, and its owner."""

from dataclasses import replace
from typing import Any

import pytest

from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.credentials.pod_roots import (
    ConfigMapRoots,
    ConfigMapState,
    Reach,
    document,
    is_injected,
    standing,
)
from meshwright.mesh.kinds import NAMESPACE, POD, SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.workload import PodTemplate
from tests.meshes import values as a

HOME = "meshwright-system"
UUID = ("meshwright.dev/proxy-uuid", "metadata.uid")


@pytest.mark.parametrize(
    ("labels", "said", "expected"),
    [
        ({}, {}, False),  # the policy alone: no webhook reviews pods there
        ({"meshwright.dev/inject": "true"}, {}, True),
        ({"meshwright.dev/inject": "true"}, {"policy": "disabled"}, True),
        ({"meshwright.dev/inject": "false"}, {}, False),
        ({"meshwright.dev/inject": "perhaps"}, {}, False),
        ({"openservicemesh.io/monitored-by": "osm"}, {"mesh": "osm"}, True),
        ({"openservicemesh.io/monitored-by": "osm"}, {}, True),
        ({"openservicemesh.io/monitored-by": "osm"}, {"policy": "disabled"}, False),
        ({"openservicemesh.io/monitored-by": "other"}, {"mesh": "osm"}, False),
        ({"meshwright.dev/inject": "true", "openservicemesh.io/ignore": "true"}, {}, False),
        ({"meshwright.dev/inject": "true", "istio.io/dataplane-mode": "ambient"}, {}, False),
    ],
)
def test_namespace_needs_roots_only_by_its_own_label(labels: Any, said: Any, expected: bool) -> None:
    """The policy alone is not enough, because no webhook reviews pods there.

    A label that prevents sidecars also prevents the roots.
    """
    namespace = NamespaceObject(Namespace("shop"), tuple(labels.items()))
    assert is_injected(read(said, "config.yaml"), namespace) is expected


@pytest.mark.parametrize("name", [HOME, "kube-system"])
def test_system_namespaces_never_get_roots(name: str) -> None:
    """The namespaces of the control plane and of the cluster have no sidecars, whatever their labels."""
    labels = (("meshwright.dev/inject", "true"),)
    assert not is_injected(read({}, "config.yaml"), NamespaceObject(Namespace(name), labels))


def _of(key: ObjectKey, value: Any) -> dict[ObjectKey, SourcedObject | None]:
    return {key: None if value is None else SourcedObject(key, value, InFile("a.yaml"))}


def test_namespace_is_followed_from_its_first_to_its_last_pod_with_a_sidecar() -> None:
    """Pods without an address count too, and the origin of the sidecar does not matter."""
    reach = Reach(read({}, "config.yaml"))
    keys = [ObjectKey(POD, Namespace("shop"), name) for name in ("one", "two", "plain")]
    running = replace(a.workload("one", "10.0.0.1"), labels=(UUID,))
    coming = PodTemplate(POD, a.workload("two", "").key, running.identity, (UUID,))
    plain = a.workload("plain", "10.0.0.3")
    assert not reach.follow(_of(keys[2], plain))
    assert not reach.follow(_of(ObjectKey(SERVICE, Namespace("shop"), "one"), None))
    assert (reach.follow(_of(keys[1], coming)), set(reach.names)) == (True, {"shop"})
    assert not reach.follow(_of(keys[0], running))
    assert not reach.follow(_of(keys[0], running))
    assert not reach.follow(_of(keys[1], None))
    assert reach.names == {"shop"}
    assert (reach.follow(_of(keys[0], None)), reach.names) == (True, frozenset())


def test_namespace_is_followed_as_its_label_changes() -> None:
    """A label that is added or removed, and a deleted namespace, change the set of namespaces."""
    reach = Reach(read({}, "config.yaml"))
    key = ObjectKey(NAMESPACE, Namespace(""), "shop")
    namespace = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "true"),))
    assert (reach.follow(_of(key, namespace)), set(reach.names)) == (True, {"shop"})
    assert not reach.follow(_of(key, namespace))
    assert reach.follow(_of(key, NamespaceObject(Namespace("shop"))))
    assert reach.follow(_of(key, namespace))
    assert (reach.follow(_of(key, None)), reach.names) == (True, frozenset())


@pytest.mark.parametrize(("revision", "expected"), [("", {"plain", "pods"}), ("new", {"chosen"})])
def test_each_revision_has_its_own_namespaces(revision: str, expected: set[str]) -> None:
    """Two control planes have different roots, so no namespace may belong to both."""
    reach = Reach(read({}, "config.yaml"), revision)
    inject, chooses = ("meshwright.dev/inject", "true"), ("meshwright.dev/revision", "new")
    spaces = {"plain": (inject,), "chosen": (chooses,), "pods": (), "other": (inject, (chooses[0], "old"))}
    for name, labels in spaces.items():
        key = ObjectKey(NAMESPACE, Namespace(""), name)
        reach.follow(_of(key, NamespaceObject(Namespace(name), labels)))
    for name in ("chosen", "pods", "other"):
        pod = replace(a.workload("one", "10.0.0.1"), labels=(UUID,))
        reach.follow(_of(ObjectKey(POD, Namespace(name), "one"), pod))
    assert reach.names == expected


MADE: dict[str, Any] = {**document("meshwright-roots", b"roots", HOME)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, ConfigMapState.ABSENT),
        (MADE, ConfigMapState.RIGHT),
        ({**MADE, "data": {"ca.pem": "others"}}, ConfigMapState.WRONG),
        ({**MADE, "data": None}, ConfigMapState.WRONG),
        ({"metadata": {"name": "meshwright-roots"}, "data": {"ca.pem": "others"}}, ConfigMapState.ANOTHER_S),
        ({"metadata": {"name": "meshwright-roots"}, "data": {"ca.pem": "roots"}}, ConfigMapState.RIGHT),
        (document("meshwright-roots", b"others", "another-home"), ConfigMapState.ANOTHER_S),
        ({"metadata": {"labels": {"meshwright.dev/control-plane": HOME}}}, ConfigMapState.ANOTHER_S),
    ],
)
def test_owner_of_a_config_map_is_in_its_labels(found: Any, expected: ConfigMapState) -> None:
    """A ConfigMap of an administrator or another control plane is not changed."""
    assert standing(None if found is None else ConfigMapRoots.parse(found), b"roots", HOME) is expected
