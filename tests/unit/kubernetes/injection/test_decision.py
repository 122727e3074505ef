"""Tests of the decision which pods get a sidecar: each reason, and its precedence."""

from typing import Any

import pytest

from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig, read
from meshwright.kubernetes.injection.decision import Reason, decide
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError

INJECT = "meshwright.dev/inject"
OSM = "openservicemesh.io/sidecar-injection"
MODE = "istio.io/dataplane-mode"
SELECTING = {
    "neverInjectSelector": [
        {"matchLabels": {"tier": "batch"}},
        {"matchExpressions": [{"key": "old", "operator": "Exists"}]},
    ],
    "alwaysInjectSelector": [
        {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["batch", "front"]}]}
    ],
}


def config(**said: Any) -> InjectionConfig:
    """Read a configuration."""
    return read(said, "config.yaml")


def found(
    pod: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    *,
    space: dict[str, str] | None = None,
    said: dict[str, str] | None = None,
    name: str = "shop",
    configured: InjectionConfig | None = None,
) -> tuple[bool, Reason]:
    """Return the decision for a pod with these labels and annotations, in a namespace with these."""
    metadata = {"labels": labels or {}, "annotations": annotations or {}}
    document: Any = {"metadata": metadata, "spec": {"containers": [{"name": "a"}], **(pod or {})}}
    namespace = NamespaceObject(Namespace(name), tuple((space or {}).items()), tuple((said or {}).items()))
    decision = decide(configured or InjectionConfig(), namespace, document)
    assert decision.words
    return decision.inject, decision.reason


@pytest.mark.parametrize("policy", ["enabled", "disabled"])
@pytest.mark.parametrize(
    ("label", "annotation", "osm", "expected"),
    [
        ("", "", "", None),
        ("true", "false", "", True),
        ("false", "true", "enabled", False),
        ("", "true", "disabled", True),
        ("", "false", "", False),
        ("", "", "enabled", True),
        ("", "", "yes", True),
        ("", "", "no", False),
    ],
)
def test_switch_takes_precedence_over_the_policy(
    policy: str, label: str, annotation: str, osm: str, expected: bool | None
) -> None:
    """The pod's switch precedes its namespace's, a label precedes an annotation, and ours precedes OSM's."""
    labels = {INJECT: label} if label else {}
    annotations = {key: value for key, value in ((INJECT, annotation), (OSM, osm)) if value}
    configured = config(policy=policy)
    by_policy = (policy == "enabled", Reason.POLICY)
    on_pod = by_policy if expected is None else (expected, Reason.POD)
    assert found(None, labels, annotations, configured=configured) == on_pod
    on_space = by_policy if expected is None else (expected, Reason.NAMESPACE)
    assert found(space=labels, said=annotations, configured=configured) == on_space
    opposite = {INJECT: "false" if policy == "enabled" else "true"}
    both = found(None, labels, annotations, space=opposite, configured=configured)
    assert both == ((policy != "enabled", Reason.NAMESPACE) if expected is None else on_pod)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"tier": "front"}, (True, Reason.ALWAYS)),
        ({"tier": "batch"}, (False, Reason.NEVER)),
        ({"tier": "front", "old": ""}, (False, Reason.NEVER)),
        ({"tier": "batch", INJECT: "true"}, (True, Reason.POD)),
        ({"tier": "other"}, (False, Reason.NAMESPACE)),
    ],
)
def test_selectors_have_a_precedence_between_pod_and_namespace(
    labels: dict[str, str], expected: tuple[bool, Reason]
) -> None:
    """The never selector precedes the always selector."""
    assert found(None, labels, space={INJECT: "false"}, configured=config(**SELECTING)) == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"annotations": {"kubernetes.io/config.mirror": "5e3f"}}, Reason.MIRROR),
        ({"pod": {"hostNetwork": True}}, Reason.HOST_NETWORK),
        *(
            ({"name": item}, Reason.SYSTEM_NAMESPACE)
            for item in ("kube-system", "kube-public", "kube-node-lease")
        ),
        ({"name": "meshwright-system"}, Reason.CONTROL_PLANE),
        ({"space": {"openservicemesh.io/ignore": ""}}, Reason.IGNORED_NAMESPACE),
        ({"annotations": {"sidecar.istio.io/status": "{}"}}, Reason.OTHER_MESH),
        ({"annotations": {"linkerd.io/proxy-version": "x"}}, Reason.OTHER_MESH),
        ({"labels": {"osm-proxy-uuid": "x"}}, Reason.OTHER_MESH),
        ({"pod": {"initContainers": [{"name": "istio-proxy"}]}}, Reason.OTHER_MESH),
        ({"space": {MODE: "Kmesh"}}, Reason.OTHER_DATA_PLANE),
        ({"labels": {MODE: "ambient"}, "space": {MODE: "none"}}, Reason.OTHER_DATA_PLANE),
    ],
)
def test_some_pods_never_get_a_sidecar_despite_their_label(arguments: dict[str, Any], reason: Reason) -> None:
    """A sidecar could not work in such a pod, or another mesh manages the pod."""
    arguments = {**arguments, "labels": {INJECT: "true", **arguments.get("labels", {})}}
    assert found(**arguments) == (False, reason)


def test_named_mesh_leaves_namespaces_of_other_meshes_alone() -> None:
    """A mesh without a name accepts any value of the monitored-by label."""
    space = {"openservicemesh.io/monitored-by": "osm"}
    assert found(space=space) == (True, Reason.POLICY)
    assert found(space=space, configured=config(mesh="osm")) == (True, Reason.POLICY)
    assert found(space=space, configured=config(mesh="other")) == (False, Reason.OTHER_MESH)


def test_pod_can_leave_the_other_data_plane_of_its_namespace() -> None:
    """The pod's label `none` takes precedence over the namespace's data plane, as in Istio."""
    assert found(labels={MODE: "none"}, space={MODE: "ambient"}) == (True, Reason.POLICY)


@pytest.mark.parametrize("where", ["labels", "annotations", "space", "said"])
def test_invalid_value_of_a_switch_is_refused(where: str) -> None:
    """The error lists the valid values; `1` is not accepted as true."""
    arguments: dict[str, Any] = {where: {INJECT: "1"}}
    with pytest.raises(CannotPatchError, match="is '1': must be one of false, true"):
        found(**arguments)
