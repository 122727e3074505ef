"""Decision whether the CNI daemon sets interception rules for a Pod, and which. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.agent.interception.options import read
from meshwright.agent.interception.settings import Interception, InterceptionError
from meshwright.sidecars.injection.names import INIT_CONTAINER, INTERCEPTION_ANNOTATION


@dataclass(frozen=True, slots=True)
class ForeignPod:
    """A Pod with a network that stays unchanged, and the reason in a sentence."""

    why: str


def decide(pod: Mapping[str, Any] | None, uid: str) -> Interception | ForeignPod:
    """Return the interception rules of a Pod, or the reason to leave the Pod alone.

    `pod` is the Pod in the API server now, or None if missing. `uid` is the UID of the network's Pod, or
    empty if the runtime omits the UID. Raises InterceptionError for an annotation with unknown parts, because
    a Pod with only a part of its rules would be unsafe.
    """
    if pod is None:
        return ForeignPod("the pod does not exist in the cluster")
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if uid and uid != metadata.get("uid"):
        return ForeignPod("the cluster has another pod with the same name")
    if spec.get("hostNetwork"):
        return ForeignPod("the pod uses the network of the node")
    annotation = (metadata.get("annotations") or {}).get(INTERCEPTION_ANNOTATION)
    if annotation is None:
        return ForeignPod(f"the pod does not have the annotation {INTERCEPTION_ANNOTATION}")
    try:
        return read(annotation)
    except InterceptionError as error:
        raise InterceptionError(
            f"annotation {INTERCEPTION_ANNOTATION}: {error}; the injector may have a later version "
            "than meshwright-cni: upgrade meshwright-cni"
        ) from error


def waits(pod: Mapping[str, Any]) -> str:
    """Return the address of a Pod that waits for rules, or an empty text.

    A Pod waits until the first container, which checks the rules, has succeeded.
    """
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    if INTERCEPTION_ANNOTATION not in annotations or spec.get("hostNetwork"):
        return ""
    if status.get("phase") in ("Succeeded", "Failed"):
        return ""
    for proxy_status in status.get("initContainerStatuses") or ():
        ended = (proxy_status.get("state") or {}).get("terminated") or {}
        if proxy_status.get("name") == INIT_CONTAINER and ended.get("exitCode") == 0:
            return ""
    return str(status.get("podIP") or "")
