"""Test of the CNI plug-in on a real node: installation by its DaemonSet, repair, removal.

With it, Pods without privileges are in the mesh, where Pod Security `restricted` is enforced.
"""

import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent.conftest import missing_for_namespaces
from tests.kubernetes.conftest import define, namespaced
from tests.kubernetes.injection.test_injected_pods import Mesh
from tests.kubernetes.tools import containers, objects
from tests.kubernetes.tools.containers import PORT, PYTHON, application, container, pod, script
from tests.kubernetes.tools.kubectl import SECONDS, Kubectl
from tests.kubernetes.tools.objects import Document
from tests.tools import libyaml
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import Networked, Typed
from tests.tools.program import Program
from tools.real_parts.node import Node
from tools.real_parts.node_flags import CNI_NETWORKS, CNI_PLUGINS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

MANIFEST: Final = Path(__file__).parents[3] / "docs" / "kubernetes" / "cni.yaml"
HOME: Final = "meshwright-system"
ENFORCE: Final = "pod-security.kubernetes.io/enforce=restricted"
NO_RIGHT: Final = {
    "runAsNonRoot": True,
    "runAsUser": 1501,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CALL: Final = """
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
        print(answer.status, answer.headers["x-served-by"])
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print(0)
"""


class Plugin:
    """The DaemonSet of our manifest, with the tests' image, and its files on the node."""

    def __init__(self, node: Node, administrator: Kubectl) -> None:
        self._node, self._kubectl = node, administrator
        text = re.sub(r"meshwright/proxy:[\d.]+", containers.MESH, MANIFEST.read_text("utf-8"))
        self._documents = list(libyaml.load_all(text))
        self.file = node.inside.seen(f"{CNI_NETWORKS}/10-parts.conflist")
        self.program = node.inside.seen(f"{CNI_PLUGINS}/meshwright-cni")

    def install(self) -> None:
        """Apply the manifest and wait until the daemon is ready."""
        self._kubectl.apply(*self._documents)
        self.until_ready()

    def until_ready(self) -> None:
        """Wait until the daemon of the only node is ready."""
        words = ("daemonset", "meshwright-cni", f"--namespace={HOME}")
        self._kubectl.until(_is_on_the_node, *words, seconds=180)

    def daemon(self) -> Document:
        """Return the daemon's Pod."""
        (result,) = self._kubectl.get("pods", f"--namespace={HOME}", "-l", "app=meshwright-cni")["items"]
        return dict(result)

    def restarts(self) -> int:
        """Return the number of restarts of its container."""
        return int(self.daemon()["status"]["containerStatuses"][0]["restartCount"])

    def kill(self) -> None:
        """Kill the daemon's process and wait until another one is ready."""
        before = self.restarts()
        for pid in self._node.processes(self.daemon()["metadata"]["uid"]):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one that has ended meanwhile
                if b"cni\0install" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.restarts() > before, SECONDS)
        self.until_ready()

    def uninstall(self) -> None:
        """Delete all objects of the manifest at once, like `kubectl delete -f`.

        Wait until the plug-in is removed.
        """
        listed = {"apiVersion": "v1", "kind": "List", "items": self._documents}
        self._kubectl("delete", "--ignore-not-found", "-f", "-", given=json.dumps(listed))
        wait_until(lambda: not self.is_in(), SECONDS)

    def is_in(self) -> bool:
        """Return whether the runtime's network list has the plug-in."""
        return any(item["type"] == "meshwright-cni" for item in json.loads(self.file.read_bytes())["plugins"])


def _is_on_the_node(result: Document) -> bool:
    return bool(result.get("status", {}).get("numberReady") == 1)


@pytest.fixture
def plugin(real_node: Node, node_administrator: Kubectl) -> Iterator[Plugin]:
    """Return the plug-in, not yet installed; at the end the node is restored for other tests."""
    node_administrator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    made = Plugin(real_node, node_administrator)
    before = made.file.read_bytes()
    try:
        yield made
    finally:
        made.uninstall()
        made.file.write_bytes(before)


@pytest.fixture
def mesh(
    plugin: Plugin, real_node: Node, node_administrator: Kubectl, tmp_path: Path, typed: Typed
) -> Iterator[Mesh]:
    """Return a mesh and a namespace in which Pods may have no privileges."""
    del plugin
    define(node_administrator, typed, tmp_path)
    program = Program(tmp_path / "state", tmp_path / "files", Networked(typed, real_node.inside.network_file))
    with namespaced(node_administrator) as home, namespaced(node_administrator) as kubectl:
        node_administrator("label", "namespace", kubectl.namespace, ENFORCE)
        try:
            made = Mesh(real_node, home, kubectl, program, interception="cni")
            yield made
            made.server.stop()
        finally:
            program.end()


def _deployment(name: str, *command: str) -> Document:
    made = container("app", *command) if command else application(name)
    made |= {"securityContext": NO_RIGHT, "ports": [{"containerPort": PORT}]}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"serviceAccountName": name, "terminationGracePeriodSeconds": 1, "containers": [made]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _calls(mesh: Mesh, path: str) -> str:
    words = ("exec", "deploy/buyer", "-c", "app", "--", PYTHON, "-c", _CALL, f"http://shop{path}")
    return mesh.kubectl(*words).strip()


def _waits(result: Document) -> bool:
    """Return whether a Pod's first init container runs."""
    status = result["items"][0]["status"] if result["items"] else {}
    return any("running" in item["state"] for item in status.get("initContainerStatuses", ()))


def _is_ready(result: Document) -> bool:
    return bool(result["status"].get("readyReplicas") == 1)


def test_pods_without_privileges_join_the_mesh_by_the_cni_plugin(plugin: Plugin, mesh: Mesh) -> None:
    """Permitted calls go through both sidecars, other calls are denied, and removal restores the node.

    One Pod starts before the plug-in. Before the other, the daemon is killed and the network list is
    rewritten by another program.
    """
    kubectl, network = mesh.kubectl, json.loads(plugin.file.read_bytes())
    root = ("--ca", str(mesh.program.state / "ca" / "ca.pem"))
    kubectl.apply(*map(objects.account, ("buyer", "shop")))
    mesh.run(_deployment("shop"), *root)
    kubectl.until(_waits, "pods", "-l", "app=shop")
    plugin.install()
    assert plugin.is_in()
    plugin.kill()
    assert plugin.is_in()
    changed = json.dumps({**network, "plugins": network["plugins"][:-1]}, indent=3)
    plugin.file.write_text(changed)
    wait_until(plugin.is_in, SECONDS)

    kubectl.apply(
        *map(objects.service, ("buyer", "shop")),
        objects.routes("some", "/goods"),
        objects.target("buyers", kubectl.namespace, "buyer", "shop", "some"),
    )
    mesh.run(_deployment("buyer", "sh", "-c", "exec sleep 100000"), *root)
    plain = script("app", "exec sleep 100000", securityContext=NO_RIGHT)
    kubectl.apply(pod("plain", plain, terminationGracePeriodSeconds=1))
    for name in ("shop", "buyer"):
        kubectl.until(_is_ready, "deployment", name, seconds=300)
    kubectl.until_pod("plain")
    wait_until(lambda: _calls(mesh, "/goods") == "200 shop", SECONDS)
    assert _calls(mesh, "/secrets") == "403"

    plugin.uninstall()
    assert plugin.file.read_text() == changed
    wait_until(
        lambda: "exit 0" in plugin.program.read_text(), SECONDS
    )  # after the list, which no longer refers to it
