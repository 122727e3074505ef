"""Tests of the validating webhook of `meshwright serve` with kubectl and a real API server."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.keys.bundle import TrustBundle
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools import libyaml
from tests.tools.deadline import wait_until
from tests.tools.program import Program, Server
from tools.ports import free_port
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.keys import LOOPBACK

SECONDS = 60.0
TARGET = """
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: buy}
spec:
  destination: {kind: ServiceAccount, name: store}
  rules: [{kind: HTTPRouteGroup, name: paths}]
  sources: [{kind: ServiceAccount, name: client}]
"""
GROUP = """
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: paths}
spec: {matches: [{name: one, pathRegex: /one}]}
"""
WRONG = GROUP.replace("/one", "'('")
GOOD = 'meshwright_source_objects{source="kubernetes",state="good"}'
CONFIGURATION = "validatingwebhookconfiguration/meshwright"

Serve = Callable[..., Server]


@pytest.fixture
def serve(
    program: Program, shared_cluster: RunningCluster, kubectl: Kubectl, definitions: str, namespace: str
) -> Iterator[Serve]:
    """Return a function that starts a server with a webhook for the test's namespace only."""
    started: list[Server] = []
    port = free_port(LOOPBACK)

    def run(*flags: str, state: Path | None = None, kubeconfig: Path = shared_cluster.kubeconfig) -> Server:
        if state is not None:
            program.state = state
        messages = ("--kubernetes", "--kubeconfig", str(kubeconfig), "--namespaces", namespace)
        at = ("--webhook-address", f"{LOOPBACK}:{port}", "--webhook-reached-at", f"https://{LOOPBACK}:{port}")
        started.append(program.serve(*messages, *at, *flags))
        return started[-1]

    yield run
    for server in started:
        if server.process.poll() is None:
            server.stop()
    kubectl.run("delete", CONFIGURATION, "--ignore-not-found")


def until(holds: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    wait_until(holds, SECONDS)


def _judged(kubectl: Kubectl) -> bool:
    """Return whether the API server calls the webhook, which begins some time after the registration."""
    return "denied the request" in kubectl.dry_run(libyaml.load(WRONG)).message


def test_kubectl_shows_the_webhook_refusal_and_its_warnings(serve: Serve, kubectl: Kubectl) -> None:
    """An invalid object is refused with the field and the remedy.

    Valid objects have no warning, and a deletion warns of objects that need the deleted one.
    """
    server = serve()
    until(lambda: _judged(kubectl))
    refused = kubectl.run("apply", "-f", "-", given=WRONG)
    assert refused.status == 1
    assert 'admission webhook "policy.meshwright.dev" denied the request: HTTPRouteGroup ' in refused.err
    assert '  - spec.matches[0].pathRegex is "(": must be a regular expression (RE2' in refused.err
    assert kubectl.run("get", "httproutegroup", "paths").status != 0

    for item in (TARGET, GROUP):
        taken = kubectl.run("apply", "-f", "-", given=item)
        assert (taken.status, taken.err) == (0, "")
    assert _metric(server, "refused") >= 1

    def is_missed() -> bool:  # once the mesh has heard of both
        gone = kubectl.run("delete", "httproutegroup", "paths", "--dry-run=server").err
        return any("TrafficTarget" in line and "(MW2001)" in line for line in gone.splitlines())

    until(is_missed)


def _metric(server: Server, verdict: str) -> float:
    name = f'meshwright_kubernetes_reviews_total{{verdict="{verdict}"}} '
    return sum(
        float(line[len(name) :]) for line in server.get("/metrics")[1].splitlines() if line.startswith(name)
    )


def test_dry_run_is_reviewed_and_changes_nothing(serve: Serve, kubectl: Kubectl) -> None:
    """A dry run gets its warnings, and neither the cluster nor the mesh changes."""
    server = serve()
    until(lambda: _judged(kubectl))
    objects = server.metric(GOOD)
    dry = kubectl.run("apply", "--dry-run=server", "-f", "-", given=TARGET)
    assert (dry.status, "(MW2001)" in dry.err) == (0, True)
    assert kubectl.run("get", "traffictarget", "buy").status != 0
    kubectl("apply", "-f", "-", given=GROUP)  # what is taken comes to the mesh: alone
    server.until(lambda: server.metric(GOOD) > objects)
    assert server.metric(GOOD) == objects + 1


def test_every_object_is_admitted_while_no_webhook_answers(serve: Serve, kubectl: Kubectl) -> None:
    """The failure policy is Ignore, because a webhook must not prevent the repair of a cluster."""
    server = serve()
    until(lambda: _judged(kubectl))
    server.stop()
    assert kubectl.run("apply", "-f", "-", given=WRONG).status == 0


def test_webhook_configuration_is_restored_and_foreign_labels_are_kept(
    serve: Serve, kubectl: Kubectl
) -> None:
    """A changed or deleted configuration is restored. A label that others added is kept."""
    serve()
    until(lambda: _judged(kubectl))
    spoiled = '[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]'
    kubectl("patch", CONFIGURATION, "--type=json", "-p", spoiled)
    kubectl("label", CONFIGURATION, "mine=yes")
    result = kubectl.until(
        lambda completed_process: completed_process["webhooks"][0]["failurePolicy"] == "Ignore", CONFIGURATION
    )
    assert result["metadata"]["labels"]["mine"] == "yes"
    kubectl("delete", CONFIGURATION)
    until(lambda: kubectl.found(CONFIGURATION))


def test_mesh_config_in_the_control_plane_namespace_is_reviewed(
    serve: Serve, program: Program, kubectl: Kubectl, namespace: str
) -> None:
    """The MeshConfig is read there although the namespace is not in the mesh.

    Other objects there are not reviewed.
    """
    program.environment["POD_NAMESPACE"] = namespace
    serve("--namespaces", "elsewhere")

    def settings(name: str, *flags: str) -> str:
        result = {
            "apiVersion": "config.openservicemesh.io/v1alpha2",
            "kind": "MeshConfig",
            "metadata": {"name": name},
            "spec": {},
        }
        return kubectl.run("apply", *flags, "-f", "-", given=yaml.safe_dump(result)).err

    assert settings("one") == ""
    until(lambda: "(MW2040)" in settings("two", "--dry-run=server"))
    assert settings("two", "--dry-run=server").count("Warning: ") == 1
    assert kubectl.run("apply", "--dry-run=server", "-f", "-", given=WRONG).status == 0


def test_new_ca_is_added_to_the_webhook_bundle(serve: Serve, kubectl: Kubectl, tmp_path: Path) -> None:
    """The `caBundle` has the new root and the previous one, and the API server still calls the webhook."""
    server = serve()
    until(lambda: kubectl.found(CONFIGURATION))  # it is made once the server serves
    server.stop()
    before = _bundle(kubectl)
    serve(state=tmp_path / "another")
    until(lambda: _bundle(kubectl) != before)
    until(lambda: _judged(kubectl))
    own = TrustBundle.from_pems([(tmp_path / "another" / "ca" / "ca.pem").read_bytes()])
    assert _bundle(kubectl) == own.union(before)


def _bundle(kubectl: Kubectl) -> TrustBundle:
    webhooks = kubectl.get(CONFIGURATION)["webhooks"]
    (trust_bundle,) = {
        TrustBundle.from_pems([base64.b64decode(webhook["clientConfig"]["caBundle"])]) for webhook in webhooks
    }
    return trust_bundle


def test_missing_permission_to_register_is_reported_by_readiness_and_check(
    serve: Serve, program: Program, accounts: Accounts, kubectl: Kubectl
) -> None:
    """The verb and the resource are named, and the server goes on."""
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    server = serve(kubeconfig=accounts.make("reader", [rule]).kubeconfig)
    server.until(lambda: "the webhook is not registered" in server.get("/healthz/ready")[1])
    answer = server.get("/healthz/ready")
    assert (answer[0], "RBAC grants no `patch` on `validatingwebhookconfigurations" in answer[1]) == (
        200,
        True,
    )
    assert "the webhook is not registered" in program.run("check", "--state", str(program.state))[1]


def test_unregistered_webhook_can_be_applied_by_hand(
    serve: Serve, kubectl: Kubectl, program: Program, namespace: str
) -> None:
    """The output of `meshwright webhook` is applied without a warning and takes effect."""
    server = serve("--set", "webhook_register=false")
    assert kubectl.run("get", CONFIGURATION).status != 0
    settings: Any = server.bound
    status, printed, complaint = program.run(
        *("webhook", "--at", f"https://{settings['webhook']}", "--namespaces", namespace),
        *("--ca", str(program.state / "ca" / "ca.pem")),
    )
    assert status == 0, complaint
    assert libyaml.load(printed)["kind"] == "ValidatingWebhookConfiguration"
    answer = kubectl.run("apply", "-f", "-", given=printed)
    assert (answer.status, "Warning" in answer.err) == (0, False), answer.err
    until(lambda: _judged(kubectl))
