"""Whether a pod gets a sidecar, and why: what is nearest to it counts.

Never where it could not work, or the pod is somebody else's; then as its author says, as its labels are
selected, as its namespace says, and last as the policy is. Of Open Service Mesh's words the same are
understood as that had them.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig, Policy
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod, spec_of
from meshwright.sidecars.injection.checks import all_containers
from meshwright.specs.annotations import INJECT

SYSTEM_NAMESPACES: Final = frozenset({"kube-node-lease", "kube-public", "kube-system", "local-path-storage"})
OSM_INJECT: Final = "openservicemesh.io/sidecar-injection"
OSM_IGNORE: Final = "openservicemesh.io/ignore"
OSM_MONITORED: Final = "openservicemesh.io/monitored-by"
OSM_UUID: Final = "osm-proxy-uuid"
DATA_PLANE: Final = "istio.io/dataplane-mode"

_MIRROR: Final = "kubernetes.io/config.mirror"
"""A kubelet's annotation of the Pod by which a cluster sees a static pod (Kubernetes, `types.go`)."""
_ISTIO: Final = "sidecar.istio.io/status"
_LINKERD: Final = "linkerd.io/proxy-version"
_OTHERS: Final = frozenset({"istio-proxy", "linkerd-proxy", "osm-init"})
"""Names by which containers of other meshes are known."""
_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_OSM_WORDS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("enabled", "yes", "true"), True),
    **dict.fromkeys(("disabled", "no", "false"), False),
}


class Reason(enum.StrEnum):
    """What decided."""

    MIRROR = "mirror"
    HOST_NETWORK = "host-network"
    SYSTEM_NAMESPACE = "system-namespace"
    CONTROL_PLANE = "control-plane"
    OTHER_MESH = "other-mesh"
    OTHER_DATA_PLANE = "other-data-plane"
    IGNORED_NAMESPACE = "ignored-namespace"
    POD = "pod"
    NEVER = "never-selector"
    ALWAYS = "always-selector"
    NAMESPACE = "namespace"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether there is to be a sidecar, what decided that, and in words."""

    inject: bool
    reason: Reason
    words: str


Rule = Callable[[], Decision | None]
"""What a rule says, None for nothing; raises CannotPatchError where it finds a word that is none."""


def decide(config: InjectionConfig, namespace: NamespaceObject, pod: Pod) -> Decision:
    """Decide; raise CannotPatchError for a word on the pod, or its namespace, that is none."""
    return next(said for _, asked in rules(config, namespace, pod) if (said := asked()) is not None)


def rules(config: InjectionConfig, namespace: NamespaceObject, pod: Pod) -> Iterator[tuple[str, Rule]]:
    """Yield each rule in its order, in words, and what asks it: the first that says something decides."""
    labels = pod.get("metadata", {}).get("labels") or {}
    annotations = pod.get("metadata", {}).get("annotations") or {}
    theirs = dict(namespace.labels), dict(namespace.annotations)
    yield "pods that never get a sidecar", partial(_never, config, namespace, pod)
    yield "the pod's label and annotations", partial(_switched, Reason.POD, "", labels, annotations)
    yield "neverInjectSelector, alwaysInjectSelector", partial(_selected, config, labels)
    whose = "the namespace's "
    yield "the namespace's label and annotations", partial(_switched, Reason.NAMESPACE, whose, *theirs)
    yield "the policy", partial(_policy, config)


def _policy(config: InjectionConfig) -> Decision:
    return Decision(
        config.policy is Policy.ENABLED,
        Reason.POLICY,
        f"the policy is {config.policy}",
    )


def _never(config: InjectionConfig, namespace: NamespaceObject, pod: Pod) -> Decision | None:
    """Return why there cannot be a sidecar, whatever anybody says; None where there can."""
    labels = dict(namespace.labels)
    if _MIRROR in (pod.get("metadata", {}).get("annotations") or {}):
        # What runs is the file on the node; API servers refuse a mirror that has a token or a ConfigMap.
        return Decision(
            False, Reason.MIRROR, f"the pod mirrors a static pod: it has the annotation {_MIRROR}"
        )
    if spec_of(pod).get("hostNetwork"):
        words = "spec.hostNetwork is true, so the traffic of the whole node would go through the sidecar"
        return Decision(False, Reason.HOST_NETWORK, words)
    if namespace.name in SYSTEM_NAMESPACES:
        return Decision(
            False, Reason.SYSTEM_NAMESPACE, f"namespace {namespace.name} belongs to the cluster itself"
        )
    if namespace.name == config.control_plane_namespace:
        words = (
            f"namespace {namespace.name} is the namespace of the control plane, which must "
            "start before any sidecar"
        )
        return Decision(False, Reason.CONTROL_PLANE, words)
    if OSM_IGNORE in labels:
        return Decision(False, Reason.IGNORED_NAMESPACE, f"the namespace has the label {OSM_IGNORE}")
    if other := _other_mesh(config, labels, pod):
        return Decision(False, Reason.OTHER_MESH, other)
    if other := _other_data_plane(labels, pod):
        return Decision(False, Reason.OTHER_DATA_PLANE, other)
    return None


def _other_mesh(config: InjectionConfig, namespace: Mapping[str, str], pod: Pod) -> str:
    """Say by what the pod is known to be another mesh's; nothing if it is not."""
    metadata = pod.get("metadata", {})
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    for annotation in (_ISTIO, _LINKERD):
        if annotation in annotations:
            return f"the annotation {annotation} shows that the pod has the sidecar of another mesh"
    if OSM_UUID in labels:
        return f"the label {OSM_UUID} shows that the pod has the sidecar of Open Service Mesh"
    for name in sorted({str(each.get("name")) for each in all_containers(pod)} & _OTHERS):
        return f"the container {name} shows that the pod has the sidecar of another mesh"
    monitored = namespace.get(OSM_MONITORED, config.mesh)
    if config.mesh and monitored != config.mesh:
        return f"the namespace's label {OSM_MONITORED} is {monitored!r}, but this mesh is {config.mesh!r}"
    return ""


def _other_data_plane(namespace: Mapping[str, str], pod: Pod) -> str:
    """Say by which label another data plane has the pod's traffic; nothing if none has. The pod's counts."""
    own = (pod.get("metadata", {}).get("labels") or {}).get(DATA_PLANE)
    said = namespace.get(DATA_PLANE, "none") if own is None else own
    if said == "none":
        return ""
    return f"{'the namespace' if own is None else 'the pod'}'s label {DATA_PLANE} is {said!r}"


def _switched(
    reason: Reason, whose: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Decision | None:
    """Return what a label or an annotation says, in that order, and then Open Service Mesh's annotation."""
    for kind, words, name, known in (
        ("label", labels, INJECT, _WORDS),
        ("annotation", annotations, INJECT, _WORDS),
        ("annotation", annotations, OSM_INJECT, _OSM_WORDS),
    ):
        if (said := words.get(name)) is None:
            continue
        if said not in known:
            raise CannotPatchError(
                f"{whose}{kind} {name} is {said!r}: must be one of {', '.join(sorted(known))}"
            )
        return Decision(known[said], reason, f"{whose}{kind} {name} is {said}")
    return None


def _selected(config: InjectionConfig, labels: Mapping[str, str]) -> Decision | None:
    for each in config.never:
        if each.matches(labels):
            return Decision(False, Reason.NEVER, f"neverInjectSelector matches with {each}")
    for each in config.always:
        if each.matches(labels):
            return Decision(True, Reason.ALWAYS, f"alwaysInjectSelector matches with {each}")
    return None
