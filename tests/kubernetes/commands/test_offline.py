"""Tests of `lint`, `diff` and `explain --kubernetes` on a real API, also with few permissions."""

import json

import yaml

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

READER = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}


def test_commands_show_the_effect_of_manifests_on_a_cluster(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The cluster has no problems and allows the call.

    A changed TrafficTarget forbids it, and `diff` names the affected proxy.
    """
    at = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig), "--namespaces", kubectl.namespace)
    ask = ("--from", f"{kubectl.namespace}/buyer", "--to", f"{kubectl.namespace}/shop:80")
    kubectl.until(
        lambda result: any(item["endpoints"] for item in result["items"]),
        *("endpointslices", "-l", "kubernetes.io/service-name=shop"),
    )
    assert program.run("lint", *at) == (0, "no problems found\n", "")
    assert program.run("explain", *at, *ask)[0] == 0

    target = kubectl.get("traffictarget", "buyers")
    target["metadata"] = {"name": "buyers", "namespace": kubectl.namespace}
    target["spec"]["sources"][0]["name"] = "somebody"
    file = program.files / "target.yaml"
    file.write_text(yaml.safe_dump(target))
    assert program.run("explain", *at, "--mesh", str(file), *ask)[0] == 1
    status, out, complaint = program.run("diff", *at, "--names", str(file))
    assert (status, complaint) == (1, "")
    assert str(buyer) in out
    status, out, _ = program.run("lint", *at, "--json", str(file))
    assert {load["object"] for load in json.loads(out)} == {f"TrafficTarget {kubectl.namespace}/buyers"}


def test_mesh_config_of_the_control_plane_namespace_is_used(
    shared_cluster: RunningCluster,
    kubectl: Kubectl,
    administrator: Kubectl,
    program: Program,
    buyer: ProxyName,
) -> None:
    """The user names that namespace, which need not be in the mesh."""
    del buyer
    home = f"{kubectl.namespace}-home"
    at = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig), "--namespaces", kubectl.namespace)
    ask = ("--from", f"{kubectl.namespace}/shop", "--to", f"{kubectl.namespace}/shop:80")
    administrator("create", "namespace", home)
    try:
        config = {
            "apiVersion": "config.openservicemesh.io/v1alpha2",
            "kind": "MeshConfig",
            "metadata": {"name": "osm-mesh-config", "namespace": home},
            "spec": {"traffic": {"enablePermissiveTrafficPolicyMode": True}},
        }
        administrator.apply(config)
        kubectl.until(
            lambda result: any(item["endpoints"] for item in result["items"]),
            *("endpointslices", "-l", "kubernetes.io/service-name=shop"),
        )
        assert program.run("explain", *at, *ask)[0] == 1
        assert program.run("explain", *at, "--control-plane-namespace", home, *ask)[0] == 0
    finally:
        administrator("delete", "namespace", home, "--wait=false")


def test_missing_permissions_are_reported_for_the_user(
    accounts: Accounts, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The error has the verb, the resource and the user."""
    del buyer
    rules = [READER | {"apiGroups": [group]} for group in ("access.smi-spec.io", "specs.smi-spec.io")]
    account = accounts.make("developer", [*rules, {**READER, "apiGroups": [""], "resources": ["services"]}])
    at = ("--kubernetes", "--kubeconfig", str(account.kubeconfig), "--namespaces", kubectl.namespace)
    status, out, text = program.run("lint", *at)
    assert (status, out) == (2, "")
    assert text.startswith("the cluster cannot be read completely: may not list ")
    assert f"to {account.user}" in text
    accounts.allow(account, [READER])
    assert program.run("lint", *at)[0] == 0
