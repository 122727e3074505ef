"""Tests of `migrate osm --kubernetes` on a real API, which accepts the written manifests."""

import json
import shlex

from meshwright.cli.migrating.installation import UNCONVERTED
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Document, Kubectl
from tests.tools import libyaml
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

MESH: Document = {
    "apiVersion": "config.openservicemesh.io/v1alpha2",
    "kind": "MeshConfig",
    "metadata": {"name": "osm-mesh-config"},
    "spec": {
        "sidecar": {"envoyImage": "envoyproxy/envoy:v1.22", "logLevel": "debug"},
        "traffic": {"enableEgress": True, "outboundPortExclusionList": [6379]},
    },
}


def test_migration_findings_disappear_after_its_steps(
    shared_cluster: RunningCluster, kubectl: Kubectl, definitions: str, program: Program
) -> None:
    """A monitored namespace, an old MeshConfig and a Pod with the old sidecar are found.

    The written manifests and commands are accepted, and resolve the findings.
    """
    del definitions
    here, label = kubectl.namespace, "openservicemesh.io/monitored-by"
    owned = {label: here, "team": "payments", "pod-security.kubernetes.io/enforce": "privileged"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": here, "labels": owned}}
    kubectl("apply", "-f", "-", given=json.dumps(namespace))
    old = objects.pod("old")
    old["metadata"]["labels"]["osm-proxy-uuid"] = "x"
    kubectl.apply(MESH, old, objects.routes("all"))
    out = program.files / "moved"
    at = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig), "--mesh-name", here)
    words = ("migrate", "osm", *at, "--control-plane-namespace", here, "--out", str(out), "--json")

    def found() -> tuple[dict[str, str], list[str]]:
        status, text, complaint = program.run(*words)
        assert status in (0, 1), complaint
        answer = json.loads(text)
        marked = [finding for finding in answer["findings"] if finding["standing"] != "works"]
        return {item["what"]: item["standing"] for item in marked}, answer["commands"]

    before, commands = found()
    assert before[f"Namespace {here}"] == "rewritten"
    assert before[f"MeshConfig {here}/osm-mesh-config"] == "rewritten"
    assert before[f"Pod {here}/old"] == "to do"
    assert f"HTTPRouteGroup {here}/all" not in before
    taken = ("apply", "--server-side", "--force-conflicts", "-f", str(out / "manifests"))
    assert "serverside-applied (server dry run)" in kubectl(*taken, "--dry-run=server")
    kubectl("delete", "pod", "old", "--wait=true", "--grace-period=0", "--force")
    kubectl("delete", "meshconfig", "osm-mesh-config")
    kubectl(*taken)
    for command in commands:
        kubectl(*shlex.split(command)[1:])
    labels = json.loads(kubectl("get", "namespace", here, "-o", "json"))["metadata"]["labels"]
    assert labels.items() >= {**owned, "meshwright.dev/inject": "false"}.items()
    after, _ = found()
    assert not {f"Namespace {here}", f"MeshConfig {here}/osm-mesh-config", f"Pod {here}/old"} & after.keys()


def test_cluster_with_osm_conversion_webhook_is_migrated_step_by_step(
    shared_cluster: RunningCluster, kubectl: Kubectl, definitions: str, program: Program
) -> None:
    """OSM's osm-bootstrap is gone and its conversion webhook remains, so no TrafficSplit can be read.

    The printed commands remove the webhook and install our definitions.
    """
    here, crd = kubectl.namespace, "trafficsplits.split.smi-spec.io"
    at = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig), "--control-plane-namespace", here)
    out = program.files / "moved"
    config = {"service": {"namespace": here, "name": "osm-bootstrap", "path": "/convert", "port": 9443}}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    theirs = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    applied = ("apply", "--server-side", "-f", "-")

    def conversion() -> Document | None:
        status, message, complaint = program.run("check", *at, "--before", "--json")
        assert status in (0, 1), complaint
        lines = {check["name"]: check for check in json.loads(message)["checks"]}
        return lines.get("conversion")

    assert conversion() is None
    kubectl("patch", "crd", crd, "--type=merge", "-p", json.dumps(theirs))
    try:
        line = conversion()
        assert line is not None
        assert line["status"] == "failed"
        assert (
            f"Service {here}/osm-bootstrap of the conversion webhook lacks a ready endpoint" in line["said"]
        )
        refused = kubectl.run(*applied, "--force-conflicts", given=definitions)
        assert "should not be set when strategy is not set to Webhook" in refused.err
        kubectl.apply(MESH)
        status, text, complaint = program.run("migrate", "osm", *at, "--out", str(out), "--json")
        assert status in (0, 1), complaint
        (do,) = (
            finding["do"] for finding in json.loads(text)["findings"] if finding["field"] == "spec.conversion"
        )
        first, second = (item for item in do.split("`") if item.startswith(("kubectl ", "meshwright ")))
        assert second == "meshwright crds | kubectl apply --server-side --force-conflicts -f -"
        kubectl(*shlex.split(first)[1:])
        kubectl(*applied, "--force-conflicts", given=definitions)
        assert conversion() is None
        printed = program.run("install", "--print", "-n", here, "--values", str(out / "values.yaml"))
        assert printed[0] == 0, printed[2]
        made = kubectl(*applied, "--dry-run=server", given=printed[1])
        count = sum(1 for item in libyaml.load_all(printed[1]) if item)
        assert made.count("serverside-applied (server dry run)") == count
        kubectl(*applied[:-1], str(out / "manifests"), "--dry-run=server", "--force-conflicts")
    finally:
        kubectl("patch", "crd", crd, "--type=merge", "-p", UNCONVERTED)
