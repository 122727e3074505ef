"""`migrate osm --kubernetes` on a real API, and what it writes, taken by the API server."""

import json

from tests.kubernetes import objects
from tests.kubernetes.kubectl import Document, Kubectl
from tests.program import Program
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


def test_what_a_cluster_has_is_judged_and_what_is_written_is_taken(
    shared_cluster: RunningCluster, kubectl: Kubectl, definitions: str, program: Program
) -> None:
    """The namespace was watched alone; a pod in it has the old sidecar; each mark goes when it is mended."""
    del definitions
    here, label = kubectl.namespace, "openservicemesh.io/monitored-by"
    kubectl("label", "namespace", here, f"{label}={here}")
    old = objects.pod("old")
    old["metadata"]["labels"]["osm-proxy-uuid"] = "x"
    kubectl.apply(MESH, old, objects.routes("all"))
    out = program.files / "moved"
    at = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig), "--mesh-name", here)
    words = ("migrate", "osm", *at, "--control-plane-namespace", here, "--out", str(out), "--json")

    def found() -> dict[str, str]:
        status, said, complaint = program.run(*words)
        assert status in (0, 1), complaint
        told = json.loads(said)["findings"]
        return {each["what"]: each["standing"] for each in told if each["standing"] != "works"}

    before = found()
    assert before[f"Namespace {here}"] == "rewritten"
    assert before[f"MeshConfig {here}/osm-mesh-config"] == "rewritten"
    assert before[f"Pod {here}/old"] == "to do"
    assert f"HTTPRouteGroup {here}/all" not in before
    taken = ("apply", "--server-side", "--force-conflicts", "-f", str(out / "manifests"))
    assert "serverside-applied (server dry run)" in kubectl(*taken, "--dry-run=server")
    kubectl("delete", "pod", "old", "--wait=true", "--grace-period=0", "--force")
    kubectl("delete", "meshconfig", "osm-mesh-config")
    kubectl(*taken)
    after = found()
    assert not {f"Namespace {here}", f"MeshConfig {here}/osm-mesh-config", f"Pod {here}/old"} & after.keys()
