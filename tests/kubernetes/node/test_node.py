"""Tests of the real node of these tests: Pods run, are probed, have names and tokens, and are removed."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.conftest import namespaced
from tests.kubernetes.tools import kubectl as tool
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.containers import PYTHON, container, pod, script
from tests.kubernetes.tools.kubectl import SECONDS, Kubectl, is_unready
from tests.kubernetes.tools.leftovers import until_nothing_is_left
from tests.tools.deadline import wait_until
from tools.real_parts.node import Node
from tools.real_parts.node_flags import PAUSE

pytestmark = [pytest.mark.envoy, pytest.mark.root, pytest.mark.timeout(900)]

AUDIENCE: Final = "meshwright.dev"
_GIVEN: Final = [{"name": "shared", "mountPath": "/shared"}]
_TOKEN: Final = {"serviceAccountToken": {"path": "token", "audience": AUDIENCE, "expirationSeconds": 600}}
_CALLER: Final = """
import sys, time, urllib.request
for url in sys.argv[1:]:
    while True:
        try:
            print(urllib.request.urlopen(url, timeout=5).read().decode(), end="")
            break
        except OSError:  # its address, or its name, is not known to everybody yet
            time.sleep(0.1)
"""
_ROOT: Final = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def kubectl(node_administrator: Kubectl) -> Iterator[Kubectl]:
    """Return the administrator's kubectl, in a namespace with a running web server."""
    web = script(
        "app",
        "exec httpd -f -p 8080 -h /shared",
        volumeMounts=[*_GIVEN, {"name": "token", "mountPath": "/token"}],
        readinessProbe={"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    )
    volumes = [{"name": "shared", "emptyDir": {}}, {"name": "token", "projected": {"sources": [_TOKEN]}}]
    first = script("first", "echo from the first >/shared/index.html", volumeMounts=_GIVEN)
    with namespaced(node_administrator) as result:
        result.apply(
            objects.account("web"),
            objects.service("web"),
            pod("web", web, volumes=volumes, initContainers=[first], serviceAccountName="web"),
        )
        result.until_pod("web")
        yield result


def test_pod_runs_its_init_container_first_and_is_ready_by_its_probe(kubectl: Kubectl) -> None:
    """The Pod's status shows the completed init container.

    It becomes unready when the probed file is removed, and ready again with it.
    """
    status = kubectl.get("pod", "web")["status"]
    (first,) = status["initContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 0
    assert status["podIP"].startswith("10.244.")
    kubectl("exec", "web", "--", "rm", "/shared/index.html")
    try:
        kubectl.until_pod("web", is_unready)
    finally:
        kubectl("exec", "web", "--", "touch", "/shared/index.html")
    kubectl.until_pod("web")
    kubectl("exec", "web", "--", "sh", "-c", "echo from the first >/shared/index.html")


def test_pod_reaches_a_service_by_its_address_and_names(kubectl: Kubectl) -> None:
    """The cluster IP, the short name and the full name lead to the server."""
    address = kubectl.get("service", "web")["spec"]["clusterIP"]
    name = f"web.{kubectl.namespace}.svc.cluster.local"
    asked = container("call", PYTHON, "-c", _CALLER, *(f"http://{each}/" for each in (address, "web", name)))
    kubectl.apply(pod("caller", asked, restartPolicy="Never"))
    kubectl.until_pod("caller", lambda result: result["status"].get("phase") == "Succeeded")
    assert kubectl("logs", "caller") == "from the first\n" * 3


def test_pod_token_identifies_its_pod_to_its_audience_only(kubectl: Kubectl) -> None:
    """A TokenReview for another audience does not authenticate the token."""
    token = kubectl("exec", "web", "--", "cat", "/token/token")

    def reviewed(audience: str) -> dict[str, object]:
        spec = {"token": token, "audiences": [audience]}
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        return dict(json.loads(kubectl("create", "-o", "json", "-f", "-", given=json.dumps(asked)))["status"])

    answer = reviewed(AUDIENCE)
    assert answer["authenticated"] is True
    user = answer["user"]
    assert isinstance(user, dict)
    assert user["username"] == f"system:serviceaccount:{kubectl.namespace}:web"
    assert user["extra"]["authentication.kubernetes.io/pod-uid"] == [
        kubectl.get("pod", "web")["metadata"]["uid"]
    ]
    assert "authenticated" not in reviewed("somebody.else")


def test_restarted_kubelet_keeps_its_running_pods(real_node: Node, kubectl: Kubectl) -> None:
    """Containers are not children of the kubelet, so they run on."""
    uid = kubectl.get("pod", "web")["metadata"]["uid"]
    before = real_node.processes(uid)
    assert before
    real_node.kubelet.kill()
    real_node.kubelet.again()
    wait_until(lambda: kubectl.run("exec", "web", "--", "true").status == 0, SECONDS)
    assert real_node.processes(uid) == before


@pytest.mark.usefixtures("node_parts")
def test_killed_tool_leaves_nothing_of_a_node(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A watcher of the tool and the kernel remove the node and its Pods."""
    folder = tmp_path_factory.mktemp("left") / "n"
    words = [sys.executable, "-m", "tools.real_parts", "node", str(folder)]
    with subprocess.Popen(words, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            (enter,) = re.findall(r"(nsenter \S+ --)", [started.stdout.readline() for _ in range(2)][1])
            kubectl = Kubectl(
                tool.program() or "", folder / "admin.kubeconfig", folder, "default", tuple(enter.split())
            )
            kubectl("wait", "--for=create", "serviceaccount/default", f"--timeout={int(SECONDS) - 5}s")
            waits = pod("waits", {"name": "waits", "image": PAUSE, "imagePullPolicy": "Never"})
            kubectl("apply", "-f", "-", given=json.dumps(waits))
            kubectl("wait", "--for=condition=Ready", "pod/waits", f"--timeout={int(SECONDS) - 5}s")
            group = json.loads((folder / "kubelet.json").read_text())["cgroupRoot"].strip("/")
        finally:
            started.kill()
    until_nothing_is_left(folder, group)


def test_pods_together_have_the_cpu_weight_of_four_processes(real_node: Node) -> None:
    """A busy machine must not starve the Pods: their probes would fail, and their Jobs would not end.

    The weight of a process is 1024 in control groups of version 1, and 100 in version 2.
    """
    weights = {
        (name, int((group / name).read_text()) / default)
        for group in real_node.inside.groups()
        for name, default in (("cpu.shares", 1024), ("cpu.weight", 100))
        if (group / name).exists()
    }
    assert weights in ({("cpu.shares", 4)}, {("cpu.weight", 4)})
