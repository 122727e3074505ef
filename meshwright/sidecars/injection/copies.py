"""Recognition of pods copied from a patched one without its annotations, as `kubectl debug --copy-to` does.

The records of the patch are lost, but its containers and volumes remain, and are recognised by their shape.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from meshwright.sidecars.contract.kubernetes import Pod, spec_of
from meshwright.sidecars.injection import names

_MOUNTED: Final[Mapping[str, str]] = {
    names.CREDENTIALS_VOLUME: names.CREDENTIALS_DIRECTORY,
    names.RUN_VOLUME: names.RUN_DIRECTORY,
    names.POD_VOLUME: names.POD_DIRECTORY,
    names.TOKEN_VOLUME: names.TOKEN_DIRECTORY,
    names.ROOTS_VOLUME: names.ROOTS_DIRECTORY,
}
_COMMANDS: Final = {names.SIDECAR_CONTAINER: "agent", names.INIT_CONTAINER: "intercept"}
"""Last word of the command of each injected container, if it has a command."""
_IDENTITIES: Final = (names.TOKEN_VOLUME, names.CREDENTIALS_VOLUME)


def is_copy(pod: Pod) -> bool:
    """Return whether a pod has the volume of an identity, and no foreign container of an injected name.

    The injected containers may be missing, because a copy may be made without init containers.
    """
    own = [container for container in _containers(pod) if container.get("name") in _COMMANDS]
    has_identity = any(volume.get("name") in _IDENTITIES for volume in _own_volumes(pod))
    return has_identity and all(map(_is_ours, own))


def volumes(pod: Pod) -> tuple[str, ...]:
    """Return the names of a copy's volumes to remove with the sidecar.

    Its own, and volumes that nothing mounts.

    The latter come from an overlay. An author's volume without a mount is removed too, because it has no use.
    """
    others = (container for container in _containers(pod) if container.get("name") not in _COMMANDS)
    used = {
        mount.get("name")
        for item in others
        for field in ("volumeMounts", "volumeDevices")
        for mount in item.get(field) or ()
    }
    own = {str(volume["name"]) for volume in _own_volumes(pod)}
    there = (str(volume.get("name")) for volume in _volumes(pod))
    return tuple(item for item in there if item in own or (item not in used and item not in names.VOLUMES))


def _is_ours(container: Mapping[str, Any]) -> bool:
    name = str(container["name"])
    command = container.get("command") or ()
    if command and command[-1] != _COMMANDS[name]:
        return False
    # The init container always has a command. A driver's sidecar may rely on the command of its image, so its
    # mounts must decide.
    if name == names.INIT_CONTAINER:
        return bool(command)
    mounts = {
        volume_mount.get("name"): volume_mount.get("mountPath")
        for volume_mount in container.get("volumeMounts") or ()
    }
    own = {volume: path for volume, path in mounts.items() if volume in _MOUNTED}
    return names.RUN_VOLUME in own and all(_MOUNTED[volume] == path for volume, path in own.items())


def _own_volumes(pod: Pod) -> Iterator[Mapping[str, Any]]:
    return (volume for volume in _volumes(pod) if volume.get("name") in names.VOLUMES and _has_shape(volume))


def _has_shape(volume: Mapping[str, Any]) -> bool:
    """Return whether a volume under an injected name has the injected source.

    API servers add defaults to it.
    """
    match volume:
        case {
            "name": names.TOKEN_VOLUME,
            "projected": {"sources": [{"serviceAccountToken": {"path": path}}]},
        }:
            return bool(path == names.TOKEN_FILE)
        case {"name": names.CREDENTIALS_VOLUME, "secret": {"secretName": secret}}:
            return str(secret).startswith(names.secret_name(""))
        case {"name": names.POD_VOLUME, "downwardAPI": {"items": [{"fieldRef": {"fieldPath": field}}]}}:
            return bool(field == f"metadata.annotations['{names.PROBES_ANNOTATION}']")
        case {"name": names.ROOTS_VOLUME, "downwardAPI": {"items": [{"fieldRef": {"fieldPath": field}}]}}:
            return bool(field == f"metadata.annotations['{names.ROOTS_ANNOTATION}']")
        case {"name": names.ROOTS_VOLUME, "configMap": _} | {"name": names.RUN_VOLUME, "emptyDir": _}:
            return True
        case _:
            return False


def _volumes(pod: Pod) -> list[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", spec_of(pod).get("volumes") or [])


def _containers(pod: Pod) -> Iterator[Mapping[str, Any]]:
    spec = spec_of(pod)
    for item in (spec.get("initContainers"), spec.get("containers")):
        yield from cast("list[Mapping[str, Any]]", item or [])
