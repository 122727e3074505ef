"""Tests of the CNI plug-in: the daemon, its files on the host, and the networks of pods.

A local server answers for the cluster's API server. The plug-in runs as on a host with only a shell, without
Python and a C library.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.agent.interception.iptables import check, put
from meshwright.agent.interception.settings import Family, Interception
from meshwright.mesh.workload import Capture
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import Machine, machine
from tests.tools.deadline import wait_until
from tools.ports import free_port

_LACKING: Final = missing_for_namespaces() or ("" if shutil.which("busybox") else "it needs busybox")
pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(_LACKING), reason=_LACKING or "it can run"),
]
SECONDS: Final = 90.0
RESULT: Final = {"cniVersion": "1.0.0", "interfaces": [], "ips": [{"address": "10.1.0.5/16"}]}
NETWORK: Final = '{"cniVersion": "1.0.0",\n "name": "net", "plugins": [ {"type": "ptp"} ]}\n'
DAEMON_SET: Final = "/apis/apps/v1/namespaces/mesh/daemonsets/meshwright-cni"
_OPTIONS: Final = "--uid 1500 --exclude-inbound-ports 15020"


def _pod(options: str | None) -> dict[str, Any]:
    annotations = {} if options is None else {"meshwright.dev/interception": options}
    return {"kind": "Pod", "metadata": {"uid": "u", "annotations": annotations}, "spec": {}}


def _waiting(name: str, address: str) -> dict[str, Any]:
    made = _pod(_OPTIONS)
    metadata = {**made["metadata"], "namespace": "shop", "name": name}
    return {**made, "metadata": metadata, "status": {"phase": "Pending", "podIP": address}}


OBJECTS: Final[dict[str, Any]] = {
    "/api/v1/namespaces/shop/pods/store": _pod(_OPTIONS),
    "/api/v1/namespaces/shop/pods/both": _pod(f"{_OPTIONS} --ipv6 --capture tproxy"),
    "/api/v1/namespaces/shop/pods/plain": _pod(None),
    "/api/v1/namespaces/shop/pods/later": _pod(f"{_OPTIONS} --dns"),
    "/api/v1/namespaces/shop/pods/early": _pod(_OPTIONS),
    "/api/v1/pods": {"kind": "PodList", "metadata": {}, "items": [_waiting("early", "10.1.0.9")]},
    DAEMON_SET: {"kind": "DaemonSet", "metadata": {}},
}


@contextmanager
def cluster() -> Iterator[tuple[dict[str, Any], str]]:
    """Serve objects like an API server; yield the objects, which may be changed, and the server's address."""
    objects = dict(OBJECTS)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            result = objects.get(self.path.partition("?")[0])
            body = json.dumps(result or {"kind": "Status", "reason": "NotFound", "code": 404}).encode()
            self.send_response(200 if result else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield objects, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Host:
    """A host's folders, with a shell as the only program, and the daemon."""

    def __init__(self, root: Path, server: str) -> None:
        self.root, self.networks = root, root / "etc/cni/net.d"
        self.run, self.programs = root / "run/cni", root / "opt/cni/bin"
        self.netns = root / "run/netns"
        for path in (self.networks, self.programs, self.netns, root / "bin"):
            path.mkdir(parents=True)
        shutil.copy(shutil.which("busybox") or "", root / "bin/sh")
        self.list = self.networks / "10-net.conflist"
        self.list.write_text(NETWORK)
        self._status = free_port("127.0.0.1")
        where = {"name": "c", "cluster": {"server": server}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        config = {"clusters": [where], "contexts": [context], "current-context": "c"}
        (root / "kubeconfig").write_text(json.dumps({**config, "users": [{"name": "u", "user": {}}]}))

    @contextmanager
    def daemon(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the daemon until it is ended or the block ends; it is ready inside the block."""
        words = ("--networks", self.networks, "--programs", self.programs, "--run", self.run)
        more = ("--status", f"127.0.0.1:{self._status}", "--kubeconfig", self.root / "kubeconfig")
        late = ("--node", "node", "--netns", self.netns)
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "meshwright",
                "cni",
                "install",
                *words,
                *more,
                *late,
                "--daemon-set",
                "mesh/meshwright-cni",
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as made:
            try:
                wait_until(lambda: made.poll() is None and self.page("/healthz/ready")[0] == 200, SECONDS)
                yield made
            finally:
                made.kill()

    def page(self, path: str) -> tuple[int, str]:
        """Return the daemon's response, or status 0 if it does not respond."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._status}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def plugin(self, command: str, pod: str, network: str) -> tuple[int, Any]:
        """Run the plug-in like a container runtime; return its exit status and its output."""
        entry = {
            "type": "meshwright-cni",
            "socket": "/run/cni/cni.sock",
            "cniVersion": "1.0.0",
            "name": "net",
        }
        done = subprocess.run(
            [shutil.which("chroot") or "", self.root, "/opt/cni/bin/meshwright-cni"],
            input=json.dumps({**entry, "prevResult": RESULT}).encode(),
            env={
                "CNI_COMMAND": command,
                "CNI_CONTAINERID": f"c-{pod}",
                "CNI_NETNS": network,
                "CNI_IFNAME": "eth0",
                "CNI_ARGS": f"K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod};K8S_POD_UID=u",
            },
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.stderr == b""
        return done.returncode, json.loads(done.stdout or b"null")

    def runs(self) -> bool:
        """Return whether the plug-in is fully installed and answers VERSION."""
        versions = (self.programs / "meshwright-cni.d").glob("*/relay.py")
        if all(version.parent.suffix for version in versions):  # it is being put there
            return False
        return "supportedVersions" in self.plugin("VERSION", "a", "b")[1]

    def is_in(self) -> bool:
        """Return whether the plug-in is in the node's network list."""
        plugins = json.loads(self.list.read_text())["plugins"]
        entry = {"type": "meshwright-cni", "socket": f"{self.run}/cni.sock"}
        return bool(plugins[1:] == [entry])


def network(of: Machine) -> str:
    """Return the path of a machine's network namespace."""
    return f"/proc/{of.pid}/ns/net"


def is_led(of: Machine, wanted: Interception) -> bool:
    """Return whether a machine has exactly the wanted rules."""
    return of.do(lambda: check(wanted)) == ()


@pytest.fixture
def host() -> Iterator[tuple[Host, dict[str, Any]]]:
    """Return a host and the cluster's objects.

    The folder has a short name because socket paths are limited.
    """
    with tempfile.TemporaryDirectory(prefix="cni") as root, cluster() as (objects, server):
        yield Host(Path(root), server), objects


def test_cni_plugin_sets_the_rules_of_injected_pods_only_and_reports_errors(
    host: tuple[Host, dict[str, Any]],
) -> None:
    """ADD sets the rules of an injected pod once, and leaves other pods alone.

    CHECK reports a missing rule, and wrong options, the node's own network and a missing network are CNI
    errors with a reason.
    """
    node, _ = host
    both = Interception(families=frozenset(Family), capture=Capture.TPROXY)
    with node.daemon(), machine() as store, machine() as plain:
        assert node.is_in()
        for _ in range(2):
            assert node.plugin("ADD", "store", network(store)) == (0, RESULT)
            assert is_led(store, Interception())
        assert node.plugin("CHECK", "store", network(store)) == (0, None)
        store.do(lambda: put(None))
        status, answer = node.plugin("CHECK", "store", network(store))
        assert (status, answer["code"]) == (1, 101)
        assert "MESH_INBOUND is missing" in answer["details"]
        assert node.plugin("ADD", "both", network(store)) == (0, RESULT)
        assert is_led(store, both)
        for pod in ("plain", "nobody"):
            assert node.plugin("ADD", pod, network(plain)) == (0, RESULT)
        status, answer = node.plugin("ADD", "later", network(plain))
        assert (status, answer["code"]) == (1, 100)
        assert "unknown or repeated option '--dns'" in answer["details"]
        assert plain.do(lambda: check(None)) == ()
        status, answer = node.plugin("ADD", "store", "/proc/self/ns/net")
        assert (status, answer["code"], answer["msg"]) == (
            1,
            7,
            "pod shop/store uses the network of the node",
        )
        status, answer = node.plugin("ADD", "store", "/run/netns/none")
        assert (status, answer["code"]) == (1, 11)
        assert node.plugin("DEL", "store", network(store)) == (0, None)
        figures = node.page("/metrics")[1].splitlines()
        assert 'meshwright_cni_requests_total{command="ADD",outcome="set-already"} 1' in figures
        assert 'meshwright_cni_requests_total{command="ADD",outcome="not-ours"} 2' in figures
        assert "meshwright_cni_installed 1" in figures


def test_pod_that_started_before_the_plugin_gets_its_rules(host: tuple[Host, dict[str, Any]]) -> None:
    """The daemon finds the pod's network namespace by its address, and leaves other namespaces alone."""
    node, _ = host
    with machine() as early, machine() as other:
        early.run("ip", "address", "add", "10.1.0.9/32", "dev", "lo")
        for name, item in (("a", other), ("b", early)):
            (node.netns / name).symlink_to(network(item))
        (node.netns / "c").write_text("no network")
        with node.daemon():
            wait_until(lambda: is_led(early, Interception()), SECONDS)
            assert other.do(lambda: check(None)) == ()


def test_killed_updated_or_removed_cni_daemon_harms_no_pod(host: tuple[Host, dict[str, Any]]) -> None:
    """Pods that start while the daemon is dead get their rules later.

    A stopped daemon stays in the network list, as in an update. Once its DaemonSet is deleted, it leaves only
    a program that does nothing.
    """
    node, objects = host
    with machine() as store, machine() as plain, machine() as short:
        with node.daemon() as daemon:
            daemon.send_signal(signal.SIGKILL)
            daemon.wait(SECONDS)
            for pod, item in (("store", store), ("plain", plain), ("both", short), ("later", plain)):
                assert node.plugin("ADD", pod, network(item)) == (0, RESULT)
            assert node.plugin("CHECK", "store", network(store))[1]["code"] == 11
            assert node.plugin("DEL", "both", network(short)) == (0, None)
            assert store.do(lambda: check(None)) == ()
        (relay,) = (node.programs / "meshwright-cni.d").glob("*/relay.py")
        relay.write_text("")  # as a disk may have it that lost its power
        with node.daemon() as daemon:
            assert node.runs()
            wait_until(
                lambda: [path.stem for path in (node.run / "missed").iterdir()] == ["c-later"], SECONDS
            )
            wait_until(lambda: 'outcome="failed"' in node.page("/metrics")[1], SECONDS)
            objects["/api/v1/namespaces/shop/pods/later"] = _pod(None)
            wait_until(lambda: is_led(store, Interception()), SECONDS)
            wait_until(lambda: not list((node.run / "missed").iterdir()), SECONDS)
            for item in (plain, short):
                assert item.do(lambda: check(None)) == ()
            anew = json.dumps(json.loads(NETWORK), indent=2)
            node.list.write_text(anew)
            wait_until(node.is_in, SECONDS)
            shutil.rmtree(node.programs / "meshwright-cni.d")
            wait_until(node.runs, SECONDS)
            daemon.terminate()
            assert daemon.wait(SECONDS) == 0
            assert node.is_in()
        del objects[DAEMON_SET]
        with node.daemon() as daemon:
            daemon.terminate()
            assert daemon.wait(SECONDS) == 0
        assert [path.name for path in node.networks.iterdir()] == [node.list.name]
        assert node.list.read_text() == anew
        assert [path.name for path in node.programs.iterdir()] == ["meshwright-cni"]
        assert node.plugin("DEL", "store", network(store)) == (0, None)
