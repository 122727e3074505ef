"""Volumes of a sidecar: its own directory, and the sources of its credentials."""

from collections.abc import Iterator
from typing import Final

from meshwright.sidecars.contract.kubernetes import Volume, VolumeMount
from meshwright.sidecars.contract.pod import InjectorContext, PodOs
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.sidecar import Sidecar
from meshwright.sidecars.layout import AUTHORITY_FILE

AUDIENCE: Final = "meshwright"
"""Audience of a pod's token; `meshwright.enrolment.proofs.kubernetes` accepts no other."""

_TOKEN_SECONDS: Final = 3600
_READABLE: Final = 0o444
"""File mode: only the sidecar mounts the volume, and its user does not own the files."""


def volumes(context: InjectorContext, sidecar: Sidecar) -> Iterator[Volume]:
    """Yield the volumes of a sidecar."""
    if sidecar.joins:
        source: dict[str, str | int] = {"audience": AUDIENCE, "expirationSeconds": _TOKEN_SECONDS}
        source["path"] = names.TOKEN_FILE
        yield {"name": names.TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": source}]}}
        yield _roots(context)
    elif context.proxy is not None:
        of: dict[str, str | int] = {
            "secretName": names.secret_name(context.proxy.uuid),
            "defaultMode": _READABLE,
        }
        yield {"name": names.CREDENTIALS_VOLUME, "secret": of}
    yield {
        "name": names.RUN_VOLUME,
        "emptyDir": {"medium": "Memory"} if context.os is PodOs.LINUX else {},
    }
    if sidecar.carries_out_probes:
        yield _annotation(names.POD_VOLUME, names.PROBES_ANNOTATION, names.PROBES_FILE)


def mounts(sidecar: Sidecar) -> Iterator[VolumeMount]:
    """Yield the volume mounts of a sidecar."""
    if sidecar.joins:
        yield {"name": names.TOKEN_VOLUME, "mountPath": names.TOKEN_DIRECTORY, "readOnly": True}
        yield {"name": names.ROOTS_VOLUME, "mountPath": names.ROOTS_DIRECTORY, "readOnly": True}
    else:
        yield {"name": names.CREDENTIALS_VOLUME, "mountPath": names.CREDENTIALS_DIRECTORY, "readOnly": True}
    yield {"name": names.RUN_VOLUME, "mountPath": names.RUN_DIRECTORY}
    if sidecar.carries_out_probes:
        yield {"name": names.POD_VOLUME, "mountPath": names.POD_DIRECTORY, "readOnly": True}


def _roots(context: InjectorContext) -> Volume:
    assert context.joining is not None  # noqa: S101 - who joins has it
    if context.joining.roots:
        return _annotation(names.ROOTS_VOLUME, names.ROOTS_ANNOTATION, AUTHORITY_FILE)
    return {
        "name": names.ROOTS_VOLUME,
        "configMap": {
            "name": context.joining.roots_config_map,
            "items": [{"key": AUTHORITY_FILE, "path": AUTHORITY_FILE}],
        },
    }


def _annotation(volume: str, annotation: str, file: str) -> Volume:
    field = {"fieldPath": f"metadata.annotations['{annotation}']"}
    items: list[dict[str, str | dict[str, str]]] = [{"path": file, "fieldRef": field}]
    return {"name": volume, "downwardAPI": {"items": items}}
