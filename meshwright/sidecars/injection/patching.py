"""The patch of a pod: checks, parts, probes, annotations, in the right order."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod, Probe
from meshwright.sidecars.contract.pod import InjectorContext, OriginalProbe, Placement, RulesOwner
from meshwright.sidecars.injection import author_container as own
from meshwright.sidecars.injection import hooks, names, probes, resources, scraping
from meshwright.sidecars.injection.author_container import OwnContainer
from meshwright.sidecars.injection.checks import all_containers, check
from meshwright.sidecars.injection.containers.init_container import arguments
from meshwright.sidecars.injection.containers.parts import Parts, parts, require_whole
from meshwright.sidecars.injection.hooks import OriginalHook
from meshwright.sidecars.injection.restoration import AddedParts, empty, restored
from meshwright.sidecars.injection.sidecar import Sidecar
from meshwright.specs.annotations import OWN_UID

_OURS: Final = "meshwright.dev/"
"""Prefix of this project's annotations, which always override those of a pod."""
MOST_ANNOTATED: Final = 256 * 1024
"""Greatest total size of an object's annotations in bytes (Kubernetes API, meta/v1), names and values."""


def patch(context: InjectorContext, sidecar: Sidecar) -> Pod:
    """Return the pod with the sidecar; raise CannotPatchError.

    An existing sidecar is removed first. Therefore the function applied to its own output returns an equal
    pod, and changes that others have made since are checked too.

    A native sidecar is placed after the interception, and both before all other init containers, so that
    those can use the mesh. A classic sidecar is the first of the containers, and the interception is the last
    init container; init containers before it use the network as if there were no mesh.
    """
    pod = restored(context.pod)
    # Before the patch fills empty fields: restoration must return them as the author wrote them.
    nothing = empty(pod)
    theirs = own.taken(pod)
    check(context, sidecar, pod)
    made = parts(context, sidecar).overruled(theirs)
    require_whole(made, sidecar, context.placement)
    # Given probes take precedence, because they are from before any change of the pod.
    asked = context.original_probes or probes.originals(pod)
    kept = tuple(
        original_probe
        for original_probe in asked
        if sidecar.carries_out_probes and probes.is_rewritten(original_probe)
    )
    called = hooks.originals(pod) if sidecar.carries_out_probes else ()
    fields = {**probes.for_agent(pod, kept), **hooks.for_agent(pod, called)}
    annotations = _annotations(context, pod, theirs) | _led(context, sidecar, pod)
    annotations |= resources.widen(pod, made.containers)
    if sidecar.carries_out_probes:
        annotations |= _noted(pod, kept, called, fields)
    probes.rewrite(all_containers(pod), kept)
    hooks.rewrite(all_containers(pod), called)
    added = replace(_placed(pod, made, context), empty=nothing)
    _mark(pod, context, annotations, added)
    _require_room(pod, annotations)
    return pod


def _require_room(pod: Pod, added: Mapping[str, str]) -> None:
    """Raise CannotPatchError if an API server would refuse the pod for the size of its annotations."""
    annotations = pod["metadata"]["annotations"]
    sizes = {name: len(name.encode()) + len(annotation.encode()) for name, annotation in annotations.items()}
    if (total := sum(sizes.values())) > MOST_ANNOTATED:
        largest = max(added, key=lambda item: sizes[item])
        raise CannotPatchError(
            f"the annotations of the pod would have {total} bytes, but at most {MOST_ANNOTATED} "
            f"are allowed; the largest annotation of the injector is {largest}, with "
            f"{sizes[largest]} bytes"
        )


def _placed(pod: Pod, made: Parts, context: InjectorContext) -> AddedParts:
    """Insert the injected parts into a pod (in place); return the names of the added volumes and secrets."""
    spec = pod["spec"]
    first = spec.get("initContainers") or []
    rules = [] if made.interception is None else [made.interception]
    match context.placement:
        case Placement.NATIVE:
            first = [*rules, made.sidecar, *first]
        case Placement.CLASSIC:
            first = [*first, *rules]
            # First, because a kubelet starts containers in order, and waits for the postStart hook of each.
            spec["containers"] = [made.sidecar, *spec["containers"]]
    if first:
        spec["initContainers"] = first
    spec["volumes"] = [*(spec.get("volumes") or ()), *made.volumes]
    there = spec.get("imagePullSecrets") or []
    known = {item.get("name") for item in there}
    # Only new secrets are recorded as added, so that restoration keeps the ones of the author.
    new = tuple(item for item in dict.fromkeys(context.pull_secrets) if item not in known)
    if new:
        spec["imagePullSecrets"] = [*there, *({"name": item} for item in new)]
    return AddedParts(volumes=tuple(volume["name"] for volume in made.volumes), pull_secrets=new)


def _annotations(context: InjectorContext, pod: Pod, theirs: tuple[OwnContainer, ...]) -> dict[str, str]:
    """Return the annotations that every patched pod gets; `pod` is the pod before the change."""
    annotations = {
        names.MESH_ANNOTATION: context.mesh_name,
        names.DRIVER_ANNOTATION: context.selection.driver,
    }
    if context.reason:
        annotations[names.REASON_ANNOTATION] = context.reason
    if theirs:
        annotations[names.OWN_ANNOTATION] = own.written(theirs)
    if context.placement is Placement.CLASSIC and pod["spec"]["containers"]:
        # kubectl uses the first container by default, and the first one will be the sidecar.
        annotations[names.DEFAULT_CONTAINER] = pod["spec"]["containers"][0].get("name", "")
    return annotations


def _led(context: InjectorContext, sidecar: Sidecar, pod: Pod) -> dict[str, str]:
    """Return the annotations that others act on (agent, CNI, Prometheus).

    The author's replaced annotations are removed from the pod, and are part of the result, for restoration.
    """
    annotations: dict[str, str] = {}
    if sidecar.joins and context.joining is not None and context.joining.roots:
        annotations[names.ROOTS_ANNOTATION] = context.joining.roots.decode("ascii")
    if sidecar.intercepts and context.rules_by is RulesOwner.CNI:
        annotations[names.INTERCEPTION_ANNOTATION] = " ".join(arguments(context))
    if sidecar.ready_port is not None:
        ours, theirs = scraping.annotations(context, pod)
        annotations |= ours
        for item in theirs:
            del pod["metadata"]["annotations"][item]
        if theirs:
            annotations[names.SCRAPED_ANNOTATION] = scraping.written(theirs)
    return annotations


def _noted(
    pod: Pod,
    kept: tuple[OriginalProbe, ...],
    called: tuple[OriginalHook, ...],
    probes: Mapping[str, Probe],
) -> dict[str, str]:
    """Return the annotations with the agent's calls, and with the probes and hooks that these replaced."""
    originals: dict[str, dict[str, object]] = {}
    for original_probe in kept:
        originals.setdefault(original_probe.container, {})[original_probe.kind.value] = original_probe.probe
    lifecycles = {container.get("name", ""): container.get("lifecycle") for container in all_containers(pod)}
    for hook in called:
        originals.setdefault(hook.container, {})["lifecycle"] = lifecycles[hook.container]
    return {
        names.PROBES_ANNOTATION: json.dumps(probes, sort_keys=True),
        names.ORIGINALS_ANNOTATION: json.dumps(originals),  # not sorted: the author's order is restored
    }


def _mark(pod: Pod, context: InjectorContext, annotated: dict[str, str], added: AddedParts) -> None:
    """Set labels and annotations on the pod, and record which of them the author did not write."""
    metadata = pod.setdefault("metadata", {})
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    uuid = {names.PROXY_UUID_LABEL: OWN_UID if context.proxy is None else context.proxy.uuid}
    # An author's annotation for other tools, such as kubectl's default container, is kept.
    more = {key: value for key, value in annotated.items() if key.startswith(_OURS) or key not in annotations}
    new = replace(
        added,
        annotations=tuple(sorted(set(more) - set(annotations))),
        labels=tuple(sorted(set(uuid) - set(labels))),
    )
    metadata["labels"] = {**labels, **{key: item for key, item in uuid.items() if key not in labels}}
    metadata["annotations"] = {**annotations, **more, names.ADDED_ANNOTATION: new.written()}
