"""A Kubernetes cluster of one node for the demo, with its images and volumes."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo.kubernetes import images
from demo.kubernetes.kubectl import Kubectl, find
from demo.plane import find_envoy
from demo.supervisor import DemoError
from tools.real_parts.building import PartError
from tools.real_parts.node import Node, node
from tools.real_parts.node_flags import SOCKET

_CLAIM: Final = "data-mysql-0"
_VOLUME: Final = f"/run/demo-volumes/{_CLAIM}"


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """A cluster of the demo, whose kubelet and processes may be killed."""

    node: Node
    kubectl: Kubectl


@contextlib.contextmanager
def own_cluster(folder: Path) -> Iterator[OwnCluster]:
    """Start a cluster of one node in a new folder, with the demo's images.

    The cluster ends with the block.
    """
    try:
        with node(folder / "cluster") as started:
            cache = folder / "kubectl"
            kubectl = Kubectl(find(), started.cluster.kubeconfig, cache, started.cluster.enter)
            equip(started)
            yield OwnCluster(started, kubectl)
    except PartError as error:
        raise DemoError(str(error)) from error


def equip(started: Node) -> None:
    """Load the demo's images into a cluster's node."""
    started.load(images.bookstore())
    started.load(images.meshwright(images.MESHWRIGHT, find_envoy()))
    # The upgrade needs a second name of the same image.
    also = ("images", "tag", images.MESHWRIGHT, images.UPGRADED)
    started.inside.run("ctr", f"--address={SOCKET}", "--namespace=k8s.io", *also)


def volume(started: Node) -> dict[str, Any]:
    """Create a folder on the node for the database's volume, and return the PersistentVolume.

    The node has no storage provisioner, so the claim gets a prepared volume.
    """
    started.inside.run("mkdir", "-p", _VOLUME)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _CLAIM},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {**claim, "namespace": "bookwarehouse", "name": _CLAIM},
            "hostPath": {"path": _VOLUME, "type": "Directory"},
        },
    }
