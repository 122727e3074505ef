"""Which rules a pod is to have, by what its injection has noted on it; or that it is none of ours. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.agent.interception.options import read
from meshwright.agent.interception.settings import Interception, InterceptionError
from meshwright.sidecars.injection.names import INIT_CONTAINER, INTERCEPTION_ANNOTATION


@dataclass(frozen=True, slots=True)
class ForeignPod:
    """A pod whose network is left alone, and why."""

    why: str


def decide(pod: Mapping[str, Any] | None, uid: str) -> Interception | ForeignPod:
    """Return what of a pod's traffic is to be captured; `uid` is whose network it is, empty if nobody says.

    `pod` is as the API has it by now, None where it has none of that name. Raises InterceptionError for an
    annotation that is not understood: of rules none may be left out.
    """
    if pod is None:
        return ForeignPod("the cluster has no such pod")
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if uid and uid != metadata.get("uid"):
        return ForeignPod("the cluster has another pod of that name")
    if spec.get("hostNetwork"):
        return ForeignPod("its network is the node's")
    said = (metadata.get("annotations") or {}).get(INTERCEPTION_ANNOTATION)
    if said is None:
        return ForeignPod(f"annotation {INTERCEPTION_ANNOTATION} is not there")
    try:
        return read(said)
    except InterceptionError as error:
        raise InterceptionError(
            f"annotation {INTERCEPTION_ANNOTATION}: {error}; it is the injection's, which may be of a later "
            "version than meshwright-cni"
        ) from error


def waits(pod: Mapping[str, Any]) -> str:
    """Return the address of a pod that has not seen its rules yet; empty of one that has, or has none.

    Where its first container has ended well, there are rules.
    """
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    if INTERCEPTION_ANNOTATION not in annotations or spec.get("hostNetwork"):
        return ""
    if status.get("phase") in ("Succeeded", "Failed"):
        return ""
    for each in status.get("initContainerStatuses") or ():
        ended = (each.get("state") or {}).get("terminated") or {}
        if each.get("name") == INIT_CONTAINER and ended.get("exitCode") == 0:
            return ""
    return str(status.get("podIP") or "")
