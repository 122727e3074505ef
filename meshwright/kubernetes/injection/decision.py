"""The decision whether a Pod gets a sidecar, and why: the rule that is nearest to the Pod wins.

First, a Pod gets no sidecar if a sidecar could not work, or if the Pod belongs to another mesh. Then the
Pod's own label or annotation decides, then the label selectors of the configuration, then the namespace, and
last the policy. Labels and annotations of Open Service Mesh have their original meaning. For example, a Pod
with `meshwright.dev/inject: "false"` gets no sidecar in a namespace with `meshwright.dev/inject: "true"`.
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
"""Annotation of a kubelet on the Pod that mirrors a static Pod (Kubernetes, `types.go`)."""
_ISTIO: Final = "sidecar.istio.io/status"
_LINKERD: Final = "linkerd.io/proxy-version"
_OTHERS: Final = frozenset({"istio-proxy", "linkerd-proxy", "osm-init"})
"""Names of containers that show that another mesh injected the Pod."""
_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_OSM_WORDS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("enabled", "yes", "true"), True),
    **dict.fromkeys(("disabled", "no", "false"), False),
}


class Reason(enum.StrEnum):
    """The rule that decided whether a Pod gets a sidecar."""

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
    """Whether the Pod gets a sidecar, the rule that decided, and an explanation."""

    inject: bool
    reason: Reason
    words: str


Rule = Callable[[], Decision | None]
"""Returns the decision of a rule, or None if it does not apply. Raises CannotPatchError."""


def decide(config: InjectionConfig, namespace: NamespaceObject, pod: Pod) -> Decision:
    """Decide about a Pod. Raises CannotPatchError for an invalid value on the Pod or its namespace."""
    return next(decision for _, asked in rules(config, namespace, pod) if (decision := asked()) is not None)


def rules(config: InjectionConfig, namespace: NamespaceObject, pod: Pod) -> Iterator[tuple[str, Rule]]:
    """Yield each rule of injection with its description, in order; the first rule with a decision applies."""
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
    """Return the reason why a Pod cannot have a sidecar, or None."""
    labels = dict(namespace.labels)
    if _MIRROR in (pod.get("metadata", {}).get("annotations") or {}):
        # The node runs the file, and API servers refuse a mirror Pod with a token or a ConfigMap.
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
    """Return a sentence about a sign of another mesh on the Pod or the namespace, or an empty text."""
    metadata = pod.get("metadata", {})
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    for annotation in (_ISTIO, _LINKERD):
        if annotation in annotations:
            return f"the annotation {annotation} shows that the pod has the sidecar of another mesh"
    if OSM_UUID in labels:
        return f"the label {OSM_UUID} shows that the pod has the sidecar of Open Service Mesh"
    for name in sorted({str(container.get("name")) for container in all_containers(pod)} & _OTHERS):
        return f"the container {name} shows that the pod has the sidecar of another mesh"
    monitored = namespace.get(OSM_MONITORED, config.mesh)
    if config.mesh and monitored != config.mesh:
        return f"the namespace's label {OSM_MONITORED} is {monitored!r}, but this mesh is {config.mesh!r}"
    return ""


def _other_data_plane(namespace: Mapping[str, str], pod: Pod) -> str:
    """Return the label of another data plane, or an empty text. The Pod's label wins over the namespace's."""
    own = (pod.get("metadata", {}).get("labels") or {}).get(DATA_PLANE)
    text = namespace.get(DATA_PLANE, "none") if own is None else own
    if text == "none":
        return ""
    return f"{'the namespace' if own is None else 'the pod'}'s label {DATA_PLANE} is {text!r}"


def _switched(
    reason: Reason, owner: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Decision | None:
    """Return the decision by our label, then by our annotation, then by Open Service Mesh's annotation."""
    for kind, words, name, known in (
        ("label", labels, INJECT, _WORDS),
        ("annotation", annotations, INJECT, _WORDS),
        ("annotation", annotations, OSM_INJECT, _OSM_WORDS),
    ):
        if (text := words.get(name)) is None:
            continue
        if text not in known:
            raise CannotPatchError(
                f"{owner}{kind} {name} is {text!r}: must be one of {', '.join(sorted(known))}"
            )
        return Decision(known[text], reason, f"{owner}{kind} {name} is {text}")
    return None


def _selected(config: InjectionConfig, labels: Mapping[str, str]) -> Decision | None:
    # `neverInjectSelector` comes first, so that it wins if both match.
    for label_selector in config.never:
        if label_selector.matches(labels):
            return Decision(False, Reason.NEVER, f"neverInjectSelector matches with {label_selector}")
    for label_selector in config.always:
        if label_selector.matches(labels):
            return Decision(True, Reason.ALWAYS, f"alwaysInjectSelector matches with {label_selector}")
    return None
