"""Tests of `check --kubernetes` on a real API: each finding appears and disappears. No Pod runs."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import yaml

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import defaults, manifests
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.registry import DriverRegistry
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Document, Kubectl
from tests.tools import libyaml
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

IMAGE = "meshwright/proxy:check"
ROLES = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
ROUTINE = {"API server", "kinds", "other meshes", "Open Service Mesh"}


def found(program: Program, cluster: RunningCluster, home: str, *more: str) -> dict[str, Document]:
    """Run the check from outside; return the lines by their names."""
    at = ("--kubernetes", "--kubeconfig", str(cluster.kubeconfig), "--control-plane-namespace", home)
    status, out, complaint = program.run("check", *at, "--json", *more)
    assert complaint == ""
    answer = json.loads(out)
    assert status == int(answer["status"] == "failed")
    return {check["name"]: check for check in answer["checks"]}


def _configuration(home: str, image: str) -> Document:
    text = yaml.safe_dump({"sidecar": {"image": image}, "controlPlane": {"namespace": home}})
    metadata = {"name": "meshwright-injection"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": text}}


def _injected(home: str, namespace: str, pod: Document) -> Document:
    """Add a sidecar to a Pod, like `meshwright inject`."""
    config = InjectionConfig(image=IMAGE, control_plane_namespace=Namespace(home))
    known = InjectionInputs(config, DriverRegistry.discover().drivers)
    made = injected(known, NamespaceObject(Namespace(namespace)), copy.deepcopy(pod)).pod  # type: ignore[arg-type]
    assert made is not None
    return dict(made)


def test_check_before_installation_reports_permissions_and_osm_leftovers(
    shared_cluster: RunningCluster, kubectl: Kubectl, definitions: str, program: Program
) -> None:
    """The administrator has all permissions. A Pod of Open Service Mesh is reported until it is deleted."""
    del definitions
    answer = found(program, shared_cluster, "meshwright-system", "--before")
    assert answer.keys() == ROUTINE | {"permissions", "volume", "definitions"}
    assert answer["volume"]["status"] == "ok", "two servers need no volume"
    assert (answer["definitions"]["status"], "crds.install=false" in answer["definitions"]["do"]) == (
        "warning",
        True,
    )
    assert {answer[item]["status"] for item in ("API server", "kinds", "permissions")} == {"ok"}, answer
    old = objects.pod("old")
    old["metadata"]["labels"]["osm-proxy-uuid"] = "x"
    kubectl.apply(old)
    before = found(program, shared_cluster, "meshwright-system", "--before")["Open Service Mesh"]
    assert before["status"] == "warning"
    kubectl("delete", "pod", "old", "--grace-period=0", "--force")
    assert found(program, shared_cluster, "meshwright-system", "--before")["Open Service Mesh"] != before


def test_check_reports_pods_without_or_with_outdated_sidecars(
    shared_cluster: RunningCluster, kubectl: Kubectl, definitions: str, program: Program
) -> None:
    """Without a control plane, Pods without a sidecar, or with a failing or outdated one, are reported.

    A wrong configuration is reported, too.
    """
    del definitions
    here = kubectl.namespace
    home = f"{here}-home"
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
    try:
        in_home = replace(kubectl, namespace=home)
        in_home.apply(_configuration(home, IMAGE))
        kubectl("label", "namespace", here, "meshwright.dev/inject=true")
        kubectl.apply(objects.pod("plain"))

        def line(name: str) -> Document:
            return found(program, shared_cluster, home)[name]

        answer = found(program, shared_cluster, home)
        assert answer["control plane"]["status"] == "failed"
        assert f"{here}/plain" in answer["Pods without sidecar"]["said"]
        assert here in answer["roots"]["said"]
        kubectl("delete", "pod", "plain", "--grace-period=0", "--force")
        kubectl.apply(_injected(home, here, objects.pod("app")))
        answer = found(program, shared_cluster, home)
        assert f"{here}/plain" not in answer["Pods without sidecar"]["said"]
        assert f"{here}/app" not in answer["Pods of another make"]["said"], answer
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        sidecar = {"name": "meshwright-sidecar", "image": IMAGE, "imageID": "", "state": waiting}
        status = {
            "phase": "Pending",
            "initContainerStatuses": [{**sidecar, "ready": False, "restartCount": 0}],
        }
        patch = json.dumps({"status": status})
        kubectl("patch", "pod", "app", "--subresource=status", "--type=merge", "-p", patch)
        message = f"1 of 1 not ready: {here}/app (meshwright-sidecar: ImagePullBackOff of {IMAGE})"
        assert (line("sidecars")["status"], line("sidecars")["said"]) == ("failed", message)
        in_home.apply(_configuration(home, "meshwright/proxy:newer"))
        assert (
            f"{here}/app (spec.initContainers[meshwright-init].image is {IMAGE}; a new Pod gets"
            in line("Pods of another make")["said"]
        )
        in_home.apply({**_configuration(home, IMAGE), "data": {"config.yaml": "polcy: enabled"}})
        assert "polcy" in line("injection")["said"]
    finally:
        kubectl("delete", "namespace", home, "--wait=false")


def test_permissions_are_judged_for_the_values_of_the_installation(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, tmp_path: Path
) -> None:
    """They are found out from the settings in the cluster. Without these, the check says what it assumes."""
    home = kubectl.namespace
    values = {"store": "directory", "revision": home, "injection": {"enabled": False}}
    installed = [libyaml.load(text) for text in manifests(merged(defaults(), values), home)]
    named = [(item["kind"], item["metadata"]["name"]) for item in installed]
    roles = [item for item in installed if item["kind"] in ROLES]
    (settings,) = (item for item, name in zip(installed, named, strict=True) if name[0] == "ConfigMap")
    kubectl.apply(*roles, settings)
    try:
        permissions = found(program, shared_cluster, home)["its permissions"]
        assert permissions["status"] == "ok", permissions
        assert f"values of ConfigMap {home}/meshwright (store: directory)" in permissions["said"]

        kubectl("delete", "configmap", "meshwright")
        permissions = found(program, shared_cluster, home)["its permissions"]
        assert permissions["status"] == "failed", permissions
        assert "records.state.meshwright.dev" in permissions["said"]
        assert (
            f"assumed to be the chart's defaults, because there is no ConfigMap {home}/"
            in (permissions["said"])
        )
        assert "--values FILE" in permissions["do"]

        file = tmp_path / "values.yaml"
        file.write_text(json.dumps(values))
        permissions = found(program, shared_cluster, home, "--values", str(file))["its permissions"]
        assert permissions["status"] == "ok", permissions
        assert f"values of {file}" in permissions["said"]

        kubectl.apply(settings)
        kubectl("delete", "role", "meshwright-reporter")
        permissions = found(program, shared_cluster, home)["its permissions"]
        assert permissions["status"] == "failed", permissions
        assert "leases.coordination.k8s.io" in permissions["said"]
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            kubectl("delete", kind, "-l", f"meshwright.dev/revision={home}")
