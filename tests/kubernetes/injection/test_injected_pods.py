"""Tests of injected Pods on a real node: they join, become ready, call each other, and end.

Their authors' manifests contain nothing of the mesh, and no Secret contains a key.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent.conftest import missing_for_namespaces
from tests.kubernetes.conftest import define, namespaced
from tests.kubernetes.tools import containers, objects
from tests.kubernetes.tools.containers import PORT, PYTHON, application, container
from tests.kubernetes.tools.kubectl import Kubectl, is_unready
from tests.kubernetes.tools.objects import Document
from tests.tools.forked_cli import Networked, Typed
from tests.tools.program import Program, Server
from tests.unit.agent.issued_credentials import write_server_certificate
from tools.real_parts.flags import NODE_ADDRESS
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(900),  # a machine may be slow, and programs of Python start one after the other
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

PORTS: Final = {"ads": 15128, "enrolment": 15130, "renewal": 15131}
_CALLER: Final = """
import sys, time, urllib.error, urllib.request
def ask():
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
            return answer.headers["x-served-by"]
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError:
        return ""
until = time.monotonic() + 120
while (found := ask()) != sys.argv[2] and time.monotonic() < until:
    time.sleep(0.1)
print(found)
"""
"""Calls until it is answered as it expects, or two minutes long, and prints the last answer."""

SECURE_PORT: Final = 8443
_SECURE: Final = f"""
import http.server, os, pathlib, ssl
pathlib.Path("/tmp/pem").write_text(os.environ["PEM"])
class Application(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()
server = http.server.ThreadingHTTPServer(("", {SECURE_PORT}), Application)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("/tmp/pem")
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
"""Answers in TLS of its own."""


def _template(account: str, *, restart: str = "Always", **container: object) -> Document:
    spec = {"serviceAccountName": account, "restartPolicy": restart, "containers": [container]}
    return {"metadata": {"labels": {"app": account}}, "spec": spec}


def _shop() -> Document:
    ready = {"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1, "timeoutSeconds": 5}
    made = application("shop", readinessProbe=ready, ports=[{"name": "web", "containerPort": PORT}])
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": _template("shop", **made),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": spec}


def _classic() -> Document:
    """Return a Pod of the shop with its sidecar among the ordinary containers."""
    made = _template("shop", **application("classic"))
    metadata = {"name": "classic", "annotations": {"meshwright.dev/sidecar-placement": "classic"}}
    return {"apiVersion": "v1", "kind": "Pod", **made, "metadata": {**made["metadata"], **metadata}}


def _buys(account: str, expected: str) -> Document:
    made = container("call", PYTHON, "-c", _CALLER, "http://shop/", expected)
    spec = {"backoffLimit": 0, "template": _template(account, restart="Never", **made)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": account}, "spec": spec}


def _found_at(ports: dict[str, int]) -> list[Document]:
    """Return the control plane's Service, which leads to the server on the node."""
    served = [{"name": name, "port": PORTS[name], "targetPort": port} for name, port in ports.items()]
    sliced = [{"name": name, "port": port} for name, port in ports.items()]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "meshwright"}}
    return [
        {**service, "spec": {"ports": served}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "meshwright", "labels": {"kubernetes.io/service-name": "meshwright"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
            "ports": sliced,
        },
    ]


class Mesh:
    """A control plane on the node behind a Service of its namespace, and a namespace for Pods."""

    def __init__(
        self, node: Node, administrator: Kubectl, kubectl: Kubectl, program: Program, **config: object
    ) -> None:
        self.kubectl = kubectl
        self.program = program
        program.reads = ("--kubernetes", "--kubeconfig", str(node.cluster.kubeconfig))
        program.reads += ("--namespaces", kubectl.namespace)
        messages = [f"--set={name}_address={NODE_ADDRESS}:0" for name in ("enrolment", "renewal")]
        self.server: Server = program.serve(
            f"--ads-address={NODE_ADDRESS}:0", *messages, "--set=enrolment_proofs=kubernetes"
        )
        bound = {name: int(str(self.server.bound[name]).rpartition(":")[2]) for name in PORTS}
        administrator.apply(*_found_at(bound))
        self._config = program.files / "injection.yaml"
        self._config.write_text(
            json.dumps(
                {
                    "controlPlane": {"namespace": administrator.namespace},
                    "sidecar": {"image": containers.MESH, "imagePullPolicy": "Never", "resources": {}},
                    **config,
                }
            )
        )

    def run(self, document: Document, *flags: str) -> str:
        """Inject a manifest with the command and apply the result; return it."""
        (self.program.files / "given.json").write_text(json.dumps(document))
        words = ("inject", "-f", "given.json", "--config", str(self._config), *flags)
        status, out, complaint = self.program.run(*words, "--namespace", self.kubectl.namespace)
        assert (status, complaint) == (0, "")
        self.kubectl("apply", "-f", "-", given=out)
        return out

    def ended(self, job: str) -> str:
        """Wait until a Job is complete, with its sidecar; return its output."""
        self.kubectl.until_job(job)
        return self.kubectl("logs", f"job/{job}", "-c", "call").strip()


@pytest.fixture
def mesh(real_node: Node, node_administrator: Kubectl, typed: Typed, tmp_path: Path) -> Iterator[Mesh]:
    """Start a control plane."""
    define(node_administrator, typed, tmp_path)
    program = Program(tmp_path / "state", tmp_path / "files", Networked(typed, real_node.inside.network_file))
    with namespaced(node_administrator) as home, namespaced(node_administrator) as kubectl:
        try:
            made = Mesh(real_node, home, kubectl, program)
            yield made
            made.server.stop()
        finally:
            program.end()


def test_injected_pods_join_by_their_own_tokens_and_jobs_complete(mesh: Mesh) -> None:
    """Pods of a Deployment, a Pod with a classic sidecar and Jobs join by their UIDs.

    A caller without permission gets no answer, and its Job completes.
    """
    kubectl, names = mesh.kubectl, ("buyer", "shop", "stranger")
    kubectl.apply(
        *map(objects.account, names),
        *(objects.service(name) for name in names),
        objects.routes("all"),
        objects.target("buyers", kubectl.namespace, "buyer", "shop", "all"),
    )
    mesh.kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    mesh.run(_shop())
    mesh.run(_classic())
    mesh.run(_buys("buyer", "shop"), "--ca", str(mesh.program.state / "ca" / "ca.pem"))
    assert mesh.ended("buyer") == "shop"
    mesh.run(_buys("stranger", ""))  # its sidecar knows of no shop, and nothing goes past it
    assert mesh.ended("stranger") == ""
    kubectl.until(lambda result: result["status"].get("readyReplicas") == 2, "deployment", "shop")
    kubectl.until_pod("classic")
    pods: list[dict[str, Any]] = kubectl.get("pods")["items"]
    assert len(pods) == 5
    _has_waited_for_its_sidecar(kubectl.get("pod", "classic"))
    joined = {item["proxy"] for item in mesh.server.said("proxy joined")}
    named = ((pod["metadata"]["uid"], pod["metadata"]["labels"]["app"]) for pod in pods)
    assert joined == {f"{uid}.{account}.{kubectl.namespace}" for uid, account in named}
    assert kubectl.get("secrets")["items"] == []
    replicas = (pod for pod in pods if pod["metadata"]["name"].startswith("shop-"))
    _is_asked_by_the_agent(kubectl, next(replicas))


def test_http_https_and_tcp_probes_reach_the_application(mesh: Mesh, tmp_path: Path) -> None:
    """The kubelet sends probes to the agent, which succeeds only if the application's port is open.

    A wrong port makes its Pod unready.
    """
    kubectl, pem = mesh.kubectl, write_server_certificate(tmp_path).read_text()
    kubectl.apply(objects.account("shop"))
    often = {"periodSeconds": 1, "timeoutSeconds": 5}
    secure = container("secure", PYTHON, "-c", _SECURE, env=[{"name": "PEM", "value": pem}])
    secure["readinessProbe"] = {"httpGet": {"path": "/", "port": SECURE_PORT, "scheme": "HTTPS"}, **often}
    web = application(
        "web",
        readinessProbe={"httpGet": {"path": "/ready", "port": PORT}, **often},
        livenessProbe={"tcpSocket": {"port": PORT}, **often},
    )
    wrong = application("wrong", readinessProbe={"tcpSocket": {"port": PORT + 1}, **often})
    ca = str(mesh.program.state / "ca" / "ca.pem")
    mesh.run(containers.pod("probed", web, secure, serviceAccountName="shop"), "--ca", ca)
    mesh.run(containers.pod("wrong", wrong, serviceAccountName="shop"))
    kubectl.until_pod("probed")
    kubectl.until(lambda result: any(map(_is_wrong, result["items"])), "events", seconds=300)
    conditions = {
        condition["type"]: condition["status"]
        for condition in kubectl.get("pod", "wrong")["status"]["conditions"]
    }
    assert (conditions["Initialized"], conditions["Ready"]) == ("True", "False")
    restarts = {
        container_status["name"]: container_status["restartCount"]
        for container_status in kubectl.get("pod", "probed")["status"]["containerStatuses"]
    }
    assert restarts == {"app": 0, "secure": 0}


def _is_wrong(event: dict[str, Any]) -> bool:
    """Return whether an event reports a failed probe of the application in the Pod `wrong`."""
    of = event["involvedObject"]
    failed = (of["name"], of.get("fieldPath"), event["reason"])
    return failed == ("wrong", "spec.containers{app}", "Unhealthy")


def _has_waited_for_its_sidecar(pod: dict[str, Any]) -> None:
    """Assert that a classic sidecar's hook returned before the application started."""
    began = {
        container_status["name"]: container_status["state"]["running"]["startedAt"]
        for container_status in pod["status"]["containerStatuses"]
    }
    assert began["meshwright-sidecar"] < began["app"]


def _is_asked_by_the_agent(kubectl: Kubectl, pod: dict[str, Any]) -> None:
    """Assert that the application's readiness is that of the Pod, although the kubelet is not in the mesh."""
    name = pod["metadata"]["name"]
    kubectl("exec", name, "-c", "app", "--", *containers.away())
    kubectl.until_pod(name, is_unready)
    kubectl("exec", name, "-c", "app", "--", *containers.back())
    kubectl.until_pod(name)
