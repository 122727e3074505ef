"""Pods that a cluster has, in the mesh or outside it: a Pod runs on when its namespace leaves the mesh."""

import json
from collections.abc import Mapping
from typing import Final

from meshwright.mesh.kinds import POD
from meshwright.mesh.workload import WorkloadKey
from meshwright.providers.kubernetes.resources import kind_of
from meshwright.providers.kubernetes.running_watch import Place, RunningWatch

ENDED: Final = ("Succeeded", "Failed")
"""Phases of a Pod whose containers never run again (Kubernetes API, PodStatus)."""


def may_have_pod(watches: Mapping[Place, RunningWatch], pod: WorkloadKey, uid: str) -> bool:
    """Return whether a Pod with this name and UID runs, or may run.

    A Pod may run in a namespace whose Pods are not watched, and as long as its watch has not listed all Pods.
    """
    bodies = []
    for (resource, namespace), watch in watches.items():
        if kind_of(resource) == POD and namespace in (None, pod.namespace):
            if not watch.reflector.listed.is_set():
                return True
            item = watch.reflector.items.get((pod.namespace, pod.name))
            bodies.append(None if item is None else item.body)
    return not bodies or any(body is not None and _runs(body, uid) for body in bodies)


def _runs(body: str, uid: str) -> bool:
    """Return whether the Pod of a stored text has this UID and has not ended."""
    document = json.loads(body)
    metadata, status = document.get("metadata"), document.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    return isinstance(metadata, dict) and metadata.get("uid") == uid and phase not in ENDED
