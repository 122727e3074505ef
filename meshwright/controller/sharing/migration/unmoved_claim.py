"""The volume claim of an installation of the chart with a state directory."""

from typing import Final

from certs.errors import StateError
from meshwright.kube.api import Api
from meshwright.kube.builtin import CLAIMS
from meshwright.kube.errors import ApiError, KubeError

CLAIM: Final = "state-meshwright-0"
"""Name of the volume claim of the chart's only server with a state directory."""


async def unmoved_claim(api: Api, namespace: str) -> str:
    """Return why an empty store must not be used yet if the claim exists, else "". Raises StateError."""
    try:
        await api.get(CLAIMS, namespace, CLAIM)
    except KubeError as error:
        if isinstance(error, ApiError) and error.status == 404:
            return ""
        raise StateError(f"cannot find out whether a state directory is to be moved: {error}") from error
    return (
        f"PersistentVolumeClaim {namespace}/{CLAIM} has the state of the former server, which must be "
        "moved into the empty store: see the log of the Job meshwright-move-...; without Helm, apply the "
        f"chart with persistence.moveClaim={CLAIM} once; for a new mesh without that state, delete the claim"
    )
