"""The patch itself, and what takes it back."""

import base64
import copy
import json
from collections.abc import Mapping
from typing import Final, Literal

from sidecars.contract.errors import CannotPatchError
from sidecars.contract.kubernetes import Container, Pod, Probe, Secret, Volume, put_probe
from sidecars.contract.pod import InjectorContext, OriginalProbe, PodOs
from sidecars.injection import names, probes
from sidecars.injection.checks import all_containers, check
from sidecars.injection.interception import init_container
from sidecars.injection.sidecar import Sidecar, confined, container
from sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE

_READABLE: Final = 0o444
"""Only the sidecar has the volume; it runs as a user that is not the owner of its files."""
_OUR_WORDS: Final[tuple[tuple[Literal["annotations", "labels"], tuple[str, ...]], ...]] = (
    (
        "annotations",
        (
            names.MESH_ANNOTATION,
            names.DRIVER_ANNOTATION,
            names.PROBES_ANNOTATION,
            names.ORIGINALS_ANNOTATION,
        ),
    ),
    ("labels", (names.PROXY_UUID_LABEL,)),
)
_OUR_CONTAINERS: Final[tuple[tuple[Literal["containers", "initContainers"], str], ...]] = (
    ("containers", names.SIDECAR_CONTAINER),
    ("initContainers", names.INIT_CONTAINER),
)


def patch(context: InjectorContext, sidecar: Sidecar) -> Pod:
    """Return the pod with the sidecar; raise AlreadyPatchedError or CannotPatchError.

    The sidecar is the first container, so that it is started first. The init container that leads traffic
    through it is the last: those before it reach the network as if there were no mesh.
    """
    check(context, sidecar)
    pod = copy.deepcopy(context.pod)
    spec = pod["spec"]
    made = container(context, sidecar, _image(context))
    if context.os is PodOs.LINUX:
        made["securityContext"] = confined(raw_sockets=sidecar.raw_sockets)
    found = context.original_probes or probes.originals(context.pod)
    kept = tuple(each for each in found if sidecar.carries_out_probes and probes.is_rewritten(each))
    for each in all_containers(pod):
        _rewrite(each, kept)
    spec["containers"] = [made, *spec["containers"]]
    spec["volumes"] = [*spec.get("volumes", ()), *_volumes(context, sidecar)]
    if sidecar.intercepts:
        first = [*spec.get("initContainers", ()), init_container(context, _init_image(context))]
        spec["initContainers"] = first
    _mark(pod, context, kept, probes.for_agent(context.pod, kept) if sidecar.carries_out_probes else None)
    return pod


def secret(context: InjectorContext) -> Secret | None:
    """Return the Secret that the patched pod mounts; None in a dry run, and without a certificate."""
    certificate = context.bootstrap_certificate
    if context.dry_run or certificate is None:
        return None
    files = {
        AUTHORITY_FILE: context.trust_bundle,
        CHAIN_FILE: certificate.chain_pem,
        KEY_FILE: certificate.key.reveal(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": names.secret_name(context.proxy.uuid),
            "namespace": context.namespace,
            "labels": {names.PROXY_UUID_LABEL: context.proxy.uuid},
        },
        "type": "Opaque",
        "data": {name: base64.b64encode(content).decode("ascii") for name, content in files.items()},
    }


def restored(pod: Pod) -> Pod:
    """Return a patched pod as it was before; one that was never patched comes back as it is."""
    plain = copy.deepcopy(pod)
    spec, metadata = plain.get("spec", {}), plain.get("metadata", {})
    originals = json.loads(metadata.get("annotations", {}).get(names.ORIGINALS_ANNOTATION, "{}"))
    for each in all_containers(plain):
        each.update(originals.get(each.get("name"), {}))
    for containers, ours in _OUR_CONTAINERS:
        if containers in spec:
            spec[containers] = [each for each in spec[containers] if each.get("name") != ours]
            if not spec[containers]:
                del spec[containers]
    if "volumes" in spec:
        spec["volumes"] = [each for each in spec["volumes"] if each.get("name") not in names.VOLUMES]
        if not spec["volumes"]:
            del spec["volumes"]
    for said, keys in _OUR_WORDS:
        for key in keys:
            metadata.get(said, {}).pop(key, None)
        if metadata.get(said) == {}:
            del metadata[said]
    return plain


def _rewrite(made: Container, kept: tuple[OriginalProbe, ...]) -> None:
    for each in kept:
        if each.container == made.get("name"):
            put_probe(made, each.kind, probes.rewritten(each))


def _volumes(context: InjectorContext, sidecar: Sidecar) -> list[Volume]:
    of: dict[str, str | int] = {
        "secretName": names.secret_name(context.proxy.uuid),
        "defaultMode": _READABLE,
    }
    found: list[Volume] = [
        {"name": names.CREDENTIALS_VOLUME, "secret": of},
        {"name": names.RUN_VOLUME, "emptyDir": {"medium": "Memory"} if context.os is PodOs.LINUX else {}},
    ]
    if sidecar.carries_out_probes:
        field = {"fieldPath": f"metadata.annotations['{names.PROBES_ANNOTATION}']"}
        items: list[dict[str, str | dict[str, str]]] = [{"path": names.PROBES_FILE, "fieldRef": field}]
        found.append({"name": names.POD_VOLUME, "downwardAPI": {"items": items}})
    return found


def _mark(
    pod: Pod,
    context: InjectorContext,
    kept: tuple[OriginalProbe, ...],
    for_agent: Mapping[str, Probe] | None,
) -> None:
    metadata = pod.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), names.PROXY_UUID_LABEL: context.proxy.uuid}
    said = {names.MESH_ANNOTATION: context.mesh_name, names.DRIVER_ANNOTATION: context.selection.driver}
    if for_agent is not None:
        originals: dict[str, dict[str, Probe]] = {}
        for each in kept:
            originals.setdefault(each.container, {})[each.kind.value] = each.probe
        said[names.PROBES_ANNOTATION] = json.dumps(for_agent, sort_keys=True)
        said[names.ORIGINALS_ANNOTATION] = json.dumps(originals, sort_keys=True)
    metadata["annotations"] = {**metadata.get("annotations", {}), **said}


def _image(context: InjectorContext) -> str:
    selection = context.selection
    image = selection.windows_image if context.os is PodOs.WINDOWS else selection.linux_image
    if not image:
        raise CannotPatchError(
            f"no image is known for the {context.os} sidecar of driver {selection.driver}: name one in "
            "MeshConfig, spec.sidecar or its sidecarDrivers, or in the control plane's environment"
        )
    return image


def _init_image(context: InjectorContext) -> str:
    image = context.selection.init_image or context.selection.linux_image
    if not image:
        raise CannotPatchError("no image is known for the init container")
    return image
