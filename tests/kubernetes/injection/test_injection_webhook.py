"""Tests of the injection webhook on a real API server, where the control plane has registered it."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.admission.test_webhook import until
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Kubectl, Said
from tests.tools import libyaml
from tests.tools.program import Program, Server
from tools.ports import free_port
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.keys import LOOPBACK

CONFIGURATION = "mutatingwebhookconfiguration"
SIDECAR = "meshwright-sidecar"

Inject = Callable[..., Server]


@pytest.fixture
def inject(program: Program, shared_cluster: RunningCluster, kubectl: Kubectl) -> Iterator[Inject]:
    """Return a function that starts an injecting control plane with a configuration and a revision."""
    started: list[tuple[Server, str]] = []

    def run(config: object, revision: str = "", **more: str) -> Server:
        port = free_port(LOOPBACK)
        name = f"meshwright-{revision}" if revision else "meshwright"
        # Short, because the path of the socket in this folder may have at most 107 bytes.
        program.state = program.state.parent / (revision or "none")
        write(program.files / f"{name}.yaml", config)
        flags = {
            "webhook_address": f"{LOOPBACK}:{port}",
            "webhook_reached_at": f"https://{LOOPBACK}:{port}",
            "injection": "yes",
            "injection_config": str(program.files / f"{name}.yaml"),
            "revision": revision,
        }
        if "injection_config_map" in more:
            del flags["injection_config"]
        flags |= more
        messages = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig))
        made = program.serve(*messages, *(f"--set={item}={flag}" for item, flag in flags.items()))
        started.append((made, name))
        return made

    yield run
    for server, name in started:
        if server.process.poll() is None:
            server.stop()
        kubectl.run("delete", CONFIGURATION, name, "--ignore-not-found")
        kubectl.run("delete", "validatingwebhookconfiguration", name, "--ignore-not-found")


def write(path: Path, config: object) -> None:
    """Replace a file atomically, like a kubelet that updates the file of a ConfigMap."""
    aside = path.with_suffix(".new")
    aside.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    aside.replace(path)


def _config(image: str) -> dict[str, Any]:
    return {"sidecar": {"image": image}, "overlays": {"large": {"sidecar": {"tty": True}}}}


def _pod(name: str = "one", **metadata: Any) -> dict[str, Any]:
    made = objects.pod(name)
    return {**made, "metadata": {**made["metadata"], **metadata}}


def _dry(kubectl: Kubectl, pod: dict[str, Any]) -> Said:
    flags = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    return kubectl.run(*flags, given=yaml.safe_dump(pod))


def _image(kubectl: Kubectl, pod: dict[str, Any]) -> str:
    """Return the image of the sidecar that a pod would get, or an empty string."""
    answer = kubectl.dry_run(pod)
    if answer.status != HTTPStatus.CREATED:
        return f"refused: {answer.message}"
    made = answer.body["spec"].get("initContainers", ())
    return next((str(item["image"]) for item in made if item["name"] == SIDECAR), "")


def _readiness(program: Program) -> dict[str, Any]:
    """Return the readiness line of `meshwright check` for the running server."""
    result = libyaml.load(program.run("check", "--state", str(program.state), "--json")[1])["checks"]
    (line,) = (item for item in result if item["name"] == "readiness")
    return dict(line)


def test_label_on_namespace_or_pod_injects_a_sidecar(
    inject: Inject, kubectl: Kubectl, program: Program, shared_cluster: RunningCluster
) -> None:
    """A dry run changes nothing, and an unknown overlay is refused with the valid ones.

    `explain-injection` reports whether the existing sidecar is outdated.
    """
    server = inject(_config("proxy:1"))
    named = _pod(labels={"meshwright.dev/inject": "true"})
    until(lambda: _image(kubectl, named) == "proxy:1")
    assert _image(kubectl, _pod()) == ""
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    until(lambda: _image(kubectl, _pod()) == "proxy:1")
    assert _image(kubectl, _pod(labels={"meshwright.dev/inject": "false"})) == ""
    larger = _pod()
    own = {"name": SIDECAR, "image": "auto", "resources": {"limits": {"memory": "1Gi"}}}
    larger["spec"]["containers"].append(own)
    (sidecar,) = (
        init_container
        for init_container in libyaml.load(_dry(kubectl, larger).out)["spec"]["initContainers"]
        if init_container["name"] == SIDECAR
    )
    assert (sidecar["image"], sidecar["imagePullPolicy"]) == ("proxy:1", "IfNotPresent")
    refused = _dry(kubectl, _pod(annotations={"meshwright.dev/overlays": "small"}))
    assert refused.status != 0
    assert (
        'admission webhook "namespace.inject.meshwright.dev" denied the request: '
        "this pod must have a sidecar, but the sidecar cannot be injected: " in refused.err
    )
    overlay = "meshwright.dev/overlays has 'small', which is not an overlay; the overlays are: large"
    assert overlay in refused.err
    assert kubectl.get("pods")["items"] == []
    kubectl("create", "-f", "-", given=yaml.safe_dump(_pod()))
    made = kubectl.get("pod", "one")
    assert made["metadata"]["annotations"]["meshwright.dev/injection"] == (
        "the namespace's label meshwright.dev/inject is true"
    )
    asking = ("explain-injection", "one", "-n", kubectl.namespace, "--config", "meshwright.yaml")
    status, text, _ = program.run(*asking, "--kubeconfig", str(shared_cluster.kubeconfig))
    assert (status, text.splitlines()[-1]) == (
        0,
        "The existing Pod: its sidecar is up to date",
    )
    write(program.files / "other.yaml", {"sidecar": {"image": "proxy:1", "resources": {}}})
    other = (*asking[:-1], "other.yaml", "--kubeconfig", str(shared_cluster.kubeconfig))
    status, text, _ = program.run(*other)
    lost = [
        f"  spec.initContainers[{item}].resources.requests.{name} is {amount}; a new Pod does not "
        "get the field"
        for item in ("meshwright-init", SIDECAR)
        for name, amount in (("cpu", "50m"), ("memory", "128Mi"))
    ]
    standing = "The existing Pod: its sidecar is outdated: a new Pod would get a different one"
    assert (status, text.splitlines()[-5:]) == (1, [standing, *lost])
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject-")
    status, text, _ = program.run(*asking, "--kubeconfig", str(shared_cluster.kubeconfig))
    assert status == 1
    assert "namespace.inject.meshwright.dev: no: the namespace: label meshwright.dev/inject must be" in text
    assert server.metric('meshwright_injection_pods_total{reason="namespace",result="injected"}') >= 1
    assert server.metric('meshwright_injection_pods_total{reason="cannot-have-one",result="refused"}') == 1


def test_pod_creation_fails_without_the_control_plane_and_is_retried_by_controllers(
    inject: Inject, kubectl: Kubectl
) -> None:
    """Users get the Kubernetes error that docs/start/injection.md quotes.

    A ReplicaSet creates its Pod once the control plane is back.
    """
    server = inject(_config("proxy:1"))
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    until(lambda: _image(kubectl, _pod()) == "proxy:1")
    server.stop()
    bare = kubectl.run("run", "bare", "--image=app")
    words = "Error from server (InternalError): Internal error occurred: failed calling webhook "
    named = '"namespace.inject.meshwright.dev": failed to call webhook: Post "https://'
    assert bare.err.startswith(f"{words}{named}"), bare.err
    assert bare.err.rstrip().endswith(": connect: connection refused")
    kubectl("create", "deployment", "app", "--image=app")

    def reasons() -> set[str]:
        return {item["reason"] for item in kubectl.get("events")["items"]}

    until(lambda: "FailedCreate" in reasons())
    assert kubectl.get("pods")["items"] == []
    inject(_config("proxy:1"))
    until(lambda: len(kubectl.get("pods")["items"]) == 1)


def test_invalid_configuration_is_reported_and_the_last_good_one_is_kept(
    inject: Inject, kubectl: Kubectl, program: Program
) -> None:
    """A configuration is reloaded without a restart.

    An invalid one is logged and reported by readiness and `check`.
    """
    server = inject(_config("proxy:1"))
    file = program.files / "meshwright.yaml"
    pod = _pod(labels={"meshwright.dev/inject": "true"})
    until(lambda: _image(kubectl, pod) == "proxy:1")
    write(file, "sidecar: {image: 'proxy:2', imagge: x}\n")
    until(lambda: server.said("injection configuration rejected"))
    (answer,) = server.said("injection configuration rejected")
    assert "sidecar.imagge" in str(answer["reason"])
    assert _image(kubectl, pod) == "proxy:1"
    wrong = "the injection configuration is invalid, the last good one stays in force: "
    assert f"but: {wrong}{answer['reason']}\n" in server.get("/healthz/ready")[1]
    line = _readiness(program)
    assert (line["status"], wrong in line["said"], "sidecar.imagge" in line["said"]) == (
        "warning",
        True,
        True,
    )
    write(file, _config("proxy:3"))
    until(lambda: _image(kubectl, pod) == "proxy:3")
    assert wrong not in server.get("/healthz/ready")[1] + _readiness(program)["said"]


def test_invalid_first_configuration_is_reported_and_blocks_injected_pods(
    inject: Inject, kubectl: Kubectl, program: Program
) -> None:
    """Pods that need a sidecar cannot be created, and the error has the cause."""
    server = inject("overlays: []\n")
    wrong = "the injection configuration is invalid, pods that must have a sidecar cannot be created: "
    until(lambda: wrong in server.get("/healthz/ready")[1])
    line = _readiness(program)
    assert (line["status"], wrong in line["said"]) == ("warning", True)
    pod = _pod(labels={"meshwright.dev/inject": "true"})
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    until(lambda: "a valid injection configuration is missing: " in _image(kubectl, pod))
    write(program.files / "meshwright.yaml", _config("proxy:1"))
    until(lambda: _image(kubectl, pod) == "proxy:1")
    assert wrong not in server.get("/healthz/ready")[1]


def test_config_map_is_watched_and_problems_are_reported_on_it_as_events(
    inject: Inject, kubectl: Kubectl
) -> None:
    """An invalid ConfigMap, a missing key or a missing ConfigMap leaves the last good one in force."""
    here = kubectl.namespace
    pod = _pod(labels={"meshwright.dev/inject": "true"})
    server = inject({}, injection_config_map=f"{here}/injection/mine.yaml", revision=here)
    pod["metadata"]["labels"]["meshwright.dev/revision"] = here
    until(lambda: "ConfigMap" in server.get("/healthz/ready")[1])
    until(
        lambda: (
            f"a valid injection configuration is missing: ConfigMap {here}/injection does not"
            in _image(kubectl, pod)
        )
    )

    def put(text: str, key: str = "mine.yaml") -> None:
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "injection"},
            "data": {key: text},
        }
        kubectl.apply(made)

    def told(reason: str) -> list[str]:
        events = kubectl.get("events.events.k8s.io")["items"]
        result = [event for event in events if event["regarding"].get("name") == "injection"]
        assert all(item["regarding"]["kind"] == "ConfigMap" for item in result)
        return [item["note"] for item in result if item["reason"] == reason]

    put(yaml.safe_dump(_config("proxy:1")))
    until(lambda: _image(kubectl, pod) == "proxy:1")
    put("sidecar: {image: 'proxy:2', imagge: x}")
    until(lambda: told("InjectionConfigurationRefused"))
    (note,) = told("InjectionConfigurationRefused")
    assert f"ConfigMap {here}/injection, mine.yaml: sidecar.imagge" in note
    assert _image(kubectl, pod) == "proxy:1"
    assert (
        "the injection configuration is invalid, the last good one stays in force: "
        in server.get("/healthz/ready")[1]
    )
    assert server.metric('meshwright_injection_configurations_total{result="taken"}') == 1
    put(yaml.safe_dump(_config("proxy:3")))
    until(lambda: _image(kubectl, pod) == "proxy:3")
    until(lambda: told("Mended"))
    put("policy: [", "other.yaml")
    until(lambda: "has no key mine.yaml in its data" in server.get("/healthz/ready")[1])
    kubectl("delete", "configmap", "injection")
    until(lambda: f"ConfigMap {here}/injection does not exist" in server.get("/healthz/ready")[1])
    assert _image(kubectl, pod) == "proxy:3"
    put(yaml.safe_dump(_config("proxy:4")))
    until(lambda: _image(kubectl, pod) == "proxy:4")
    assert "injection configuration" not in server.get("/healthz/ready")[1]


def test_revisions_run_side_by_side_and_a_label_moves_a_namespace(inject: Inject, kubectl: Kubectl) -> None:
    """Each revision has its own registration. A changed label moves the namespace to the other revision."""
    inject(_config("stable:1"))
    inject(_config("canary:1"), "canary")
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    until(lambda: _image(kubectl, _pod()) == "stable:1")
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/revision=canary")
    until(lambda: _image(kubectl, _pod()) == "canary:1")
    names = {item["metadata"]["name"] for item in kubectl.get(CONFIGURATION)["items"]}
    assert {"meshwright", "meshwright-canary"} <= names
