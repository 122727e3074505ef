"""A cluster for running Pods: kubelet and companions on one node, in separate namespaces.

Images are never pulled: Pods use only images loaded by `Node.load` (`tools.real_parts.images.archives` makes
them from files of this machine). Services have addresses and DNS names inside the node. The network of this
machine stays unchanged, and nothing is left behind (`tools.real_parts.namespaces`). A node needs root and
programs of Debian (`lacking`).
"""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.real_parts import node_flags as flags
from tools.real_parts.building import PartError, build, chosen_kubernetes
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.flags import NODE_ADDRESS
from tools.real_parts.images.archives import Image, busybox
from tools.real_parts.images.layers import Layers
from tools.real_parts.keys import client
from tools.real_parts.namespaces import Namespaces, namespaces
from tools.real_parts.parts import COREDNS, KUBE_PROXY, KUBELET, NODE, SCHEDULER
from tools.real_parts.processes import PATIENCE, Program, Service, running

BRIDGE: Final = "bridge0"
"""Bridge of the node's own network; other machines of a test can be connected."""

_PROGRAMS: Final = (
    "busybox",
    "conntrack",
    "containerd",
    "ctr",
    "ip",
    "iptables",
    "nsenter",
    "runc",
    "unshare",
)
_CLIENTS: Final[Mapping[str, Sequence[str]]] = {
    "scheduler": ("system:kube-scheduler", ""),
    "kubelet": (f"system:node:{flags.NODE}", "system:nodes", NODE_ADDRESS),
    "proxy": ("system:kube-proxy", ""),
}


def lacking() -> str:
    """Return the requirements of a Kubernetes node that this machine does not meet; empty if all are met."""
    if os.geteuid() != 0:
        return "root"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if not (flags.PLUGINS / "ptp").exists():
        missing.append(f"the plug-ins of CNI in {flags.PLUGINS}")
    return ", ".join(missing)


@dataclass(frozen=True, slots=True)
class Node:
    """A running Kubernetes node: cluster, namespaces, and the kubelet, which can be killed and restarted."""

    cluster: RunningCluster
    inside: Namespaces
    kubelet: Service
    layers: Layers

    def load(self, image: Image) -> None:
        """Load an image into the node, so that Pods can use its name with `imagePullPolicy: Never`."""
        _load(self.inside, image, self.layers)

    def processes(self, uid: str) -> list[int]:
        """Return the pids of a Pod's processes as seen from outside, in the order of their start.

        The first process holds the network of the Pod for the Pod's whole life.
        """
        result = set[int]()
        for group in self.inside.groups():
            for path in group.glob(f"kubepods/**/pod{uid}/**/cgroup.procs"):
                result.update(map(int, path.read_text("ascii").split()))
        return sorted(result, key=_began)


@contextlib.contextmanager
def node(folder: Path) -> Iterator[Node]:
    """Build missing parts, start a cluster of one node in a new folder, and stop it with the block."""
    if missing := lacking():
        raise PartError(f"a node needs {missing}, which this machine does not have")
    kubernetes = chosen_kubernetes()
    programs = {part.name: build(kubernetes.own(part)) for part in NODE}
    with contextlib.ExitStack() as ends:
        inside = ends.enter_context(namespaces())
        _wire(inside)
        made = ends.enter_context(cluster(folder, controlled=True, inside=inside))
        place = made.place
        tls = client(place.keys, "admin")
        for name, words in _CLIENTS.items():
            made.keys.issue(name, *words)
            made.keys.kubeconfig(flags.kubeconfig(place, name), name, place.server)

        def runs(path: Path, words: list[str], ready: str, *, apart: bool = True) -> Service:
            program = Program(path, words, place.folder / "log", ready, tls, inside=inside, apart=apart)
            return ends.enter_context(running(program))

        at = "https://127.0.0.1:10259/healthz"
        runs(programs[SCHEDULER.name], flags.scheduler(place), at, apart=False)
        runs(Path(shutil.which("containerd") or ""), flags.containerd(place), flags.CONTAINERD_READY)
        pause = busybox("sleep")
        layers = Layers(inside.seen("/run/layers"))
        layers.folder.mkdir()
        _load(inside, Image(flags.PAUSE, pause, entrypoint=("/bin/sleep", "2147483647")), layers)
        kubelet = runs(programs[KUBELET.name], flags.kubelet(place, inside.group), flags.KUBELET_READY)
        _until_ready(made)
        runs(programs[COREDNS.name], flags.dns(place), flags.DNS_READY, apart=False)
        runs(programs[KUBE_PROXY.name], flags.proxy(place), flags.PROXY_READY)
        yield Node(made, inside, kubelet, layers)


def _began(process: int) -> int:
    """Return the start of a process in ticks of the kernel (proc(5)); ended processes sort last."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[19])
    except OSError:
        return sys.maxsize


def _wire(inside: Namespaces) -> None:
    """Configure the network: the node's address, and the CNI plug-ins and networks for Pods.

    With proxy ARP the node answers for the addresses of its Pods to other machines on the bridge.
    """
    lines = [
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {NODE_ADDRESS}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        f"route add default dev {BRIDGE}",
    ]
    inside.run("ip", "-batch", "-", stdin="\n".join(lines) + "\n")
    inside.run("sh", "-c", f"echo 1 >/proc/sys/net/ipv4/conf/{BRIDGE}/proxy_arp")
    folders = f"{flags.CNI_PLUGINS} {flags.CNI_NETWORKS}"
    inside.run(
        "sh", "-c", f"rm -rf {folders} && mkdir -p {folders} && ln -s {flags.PLUGINS}/* {flags.CNI_PLUGINS}"
    )
    inside.run("tee", f"{flags.CNI_NETWORKS}/10-parts.conflist", stdin=flags.network())


def _load(inside: Namespaces, image: Image, layers: Layers) -> None:
    archive = "/run/image.tar"
    image.write(inside.seen(archive), layers)
    inside.run("ctr", f"--address={flags.SOCKET}", "--namespace=k8s.io", "images", "import", archive)
    layers.imported()
    inside.seen(archive).unlink()


def _until_ready(made: RunningCluster) -> None:
    """Wait until the API server reports the node as ready for Pods."""
    deadline = time.monotonic() + PATIENCE
    while True:
        result = made.ask("/api/v1/nodes").get("items", [])
        answer = {
            condition["type"]: condition
            for one in result
            for condition in one["status"].get("conditions", [])
        }
        ready = answer.get("Ready", {})
        if ready.get("status") == "True":
            return
        if time.monotonic() > deadline:
            raise PartError(
                f"node {flags.NODE} is not ready: {ready.get('message', 'no condition reported')}"
            )
        time.sleep(0.1)
