"""Pods for a real kubelet: their images, made of files of this machine, and their documents."""

from pathlib import Path
from typing import Final

from tests.e2e.agent.machines import APPLICATION_UID, PROXY_UID
from tests.kubernetes.tools.objects import Document
from tools.real_parts.images.archives import Image, busybox, iptables
from tools.real_parts.images.environments import HOME, compiled_environment
from tools.real_parts.images.layers import Link, Text
from tools.real_parts.images.own_images import envoy_layer

MESH: Final = "tests.local/mesh:1"
PORT: Final = 8080
PYTHON: Final = f"{HOME}/bin/python"
_APPLETS: Final = ("sh", "cat", "echo", "httpd", "rm", "sleep", "touch", "true")
_AWAY: Final = "/tmp/away"
_APPLICATION: Final = "/opt/application.py"
_SOURCE: Final = f"""
import http.server, os, pathlib, signal

class Application(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        away = self.path == "/ready" and pathlib.Path("{_AWAY}").exists()
        self.send_response(503 if away else 200)
        self.send_header("x-served-by", os.environ["NAME"])
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
http.server.ThreadingHTTPServer(("", {PORT}), Application).serve_forever()
"""
"""Says who it is; is not ready while a file is there."""


def mesh(envoy: str) -> Image:
    """Return an image with this project, its Envoy, the programs that set rules, and an application."""
    files = {
        **busybox(*_APPLETS),
        **iptables(),
        "/usr/local/bin/meshwright": Link(f"{HOME}/bin/meshwright"),
        _APPLICATION: Text(_SOURCE),
    }
    return Image(MESH, files, below=(compiled_environment(), envoy_layer(Path(envoy))))


def container(name: str, *command: str, **more: object) -> Document:
    """Return a container with the image, which is never pulled."""
    return {"name": name, "image": MESH, "imagePullPolicy": "Never", "command": list(command), **more}


def script(name: str, lines: str, **more: object) -> Document:
    """Return a container that runs a shell script."""
    return container(name, "sh", "-c", lines, **more)


def pod(name: str, *containers: Document, labels: Document | None = None, **spec: object) -> Document:
    """Return a Pod of these containers."""
    metadata = {"name": name, "labels": labels or {"app": name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": list(containers), **spec},
    }


def secret(name: str, folder: Path) -> Document:
    """Return a Secret with the files of a folder."""
    files = {path.name: path.read_text("ascii") for path in sorted(folder.iterdir()) if path.is_file()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": files}


def meshed(name: str, account: str, ads: str) -> Document:
    """Return a Pod in the mesh: rules, a native sidecar with the Secret of its name, an application.

    The application has nothing of the mesh; the kubelet probes its readiness through the agent.
    """
    command = f"{HOME}/bin/meshwright"
    rules = container("rules", command, "intercept", securityContext=_user(0, "NET_ADMIN", "NET_RAW"))
    agent = (
        command,
        "agent",
        "--credentials=/credentials",
        "--shared-credentials",
        f"--ads={ads}",
        "--run=/tmp/agent",
    )
    more = ("--envoy=/usr/local/bin/envoy", f"--application-port={PORT}", "--concurrency=1")
    sidecar = container(
        "sidecar",
        *(*agent, *more, "--termination-least-seconds=1", "--drain-seconds=2"),
        restartPolicy="Always",
        securityContext=_user(PROXY_UID),
        startupProbe=_asked("/healthz/ready", failureThreshold=60),
        volumeMounts=[{"name": "credentials", "mountPath": "/credentials"}],
    )
    ready = _asked("/ready", ("istio-app-probe-port", str(PORT)), failureThreshold=1)
    application = container(
        "app",
        PYTHON,
        _APPLICATION,
        env=[{"name": "NAME", "value": name}],
        securityContext=_user(APPLICATION_UID),
        readinessProbe=ready,
        lifecycle={"preStop": {"sleep": {"seconds": 5}}},  # it serves until all callers know that it ends
    )
    return pod(
        name,
        application,
        labels={"app": account, "meshwright.dev/proxy-uuid": name},
        initContainers=[rules, sidecar],
        serviceAccountName=account,
        securityContext={"fsGroup": PROXY_UID},
        volumes=[{"name": "credentials", "secret": {"secretName": name, "defaultMode": 0o440}}],
    )


def application(name: str, **more: object) -> Document:
    """Return the application's container as its author writes it, without anything of the mesh."""
    return container("app", PYTHON, _APPLICATION, env=[{"name": "NAME", "value": name}], **more)


def away() -> tuple[str, ...]:
    """Return the command that makes an application unready."""
    return ("touch", _AWAY)


def back() -> tuple[str, ...]:
    """Return the command that makes an application ready again."""
    return ("rm", _AWAY)


def _user(uid: int, *capabilities: str) -> Document:
    return {"runAsUser": uid, "capabilities": {"drop": ["ALL"], "add": list(capabilities)}}


def _asked(path: str, *headers: tuple[str, str], failureThreshold: int) -> Document:  # noqa: N803 - the API's name
    """Return a probe of the agent, once a second."""
    named = [{"name": name, "value": value} for name, value in headers]
    http = {"path": path, "port": 15020, "httpHeaders": named}
    return {"httpGet": http, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": failureThreshold}
