"""Test of `explain-injection` on a real API: it uses the configuration of the control plane."""

from collections.abc import Mapping
from typing import Any

import yaml

from tests.kubernetes.conftest import namespaced
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Document, Kubectl
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster


def _config_map(name: str, key: str, value: Mapping[str, Any]) -> Document:
    data = {key: yaml.safe_dump(dict(value))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_explain_injection_uses_the_configuration_of_the_control_plane(
    shared_cluster: RunningCluster,
    administrator: Kubectl,
    kubectl: Kubectl,
    definitions: str,
    program: Program,
    accounts: Accounts,
) -> None:
    """The configuration is the default, the chart's, or another one that the settings name.

    Without permission to read it, an error is reported.
    """
    del definitions
    with namespaced(administrator) as in_home:
        _explains(shared_cluster, kubectl, in_home, program, accounts)


def _explains(
    cluster: RunningCluster, kubectl: Kubectl, in_home: Kubectl, program: Program, accounts: Accounts
) -> None:
    here, home = kubectl.namespace, in_home.namespace
    pod = objects.pod("one")
    pod["metadata"]["labels"]["meshwright.dev/inject"] = "true"
    kubectl.apply(pod)

    def said(kubeconfig: object = cluster.kubeconfig) -> tuple[int, str, str]:
        at = ("-n", here, "--control-plane-namespace", home, "--kubeconfig", str(kubeconfig))
        return program.run("explain-injection", "one", *at)

    status, _, complaint = said()
    assert (status, complaint) == (
        1,
        (
            f"ConfigMap {home}/meshwright-injection does not exist: using the default injection "
            "configuration; to use another, give --config FILE"
        ),
    )
    in_home.apply(_config_map("meshwright-injection", "config.yaml", {"policy": "disabled"}))
    status, by_chart, complaint = said()
    assert (status, complaint) == (1, "")
    in_home.apply(_config_map("own", "mine.yaml", {"sidecar": {"image": "own:1"}}))
    in_home.apply(_config_map("meshwright", "config.yaml", {"injection_config_map": f"{home}/own/mine.yaml"}))
    _, by_settings, complaint = said()
    assert complaint == ""
    assert "no image is configured" in by_chart
    assert "Result: injected" in by_settings
    in_home.apply(_config_map("own", "mine.yaml", {"sidecar": {"imagge": "own:1"}}))
    status, _, complaint = said()
    assert status == 2
    assert f"ConfigMap {home}/own: " in complaint
    assert "sidecar.imagge" in complaint

    may_read: list[dict[str, list[str]]] = [
        {"apiGroups": [""], "resources": ["pods", "namespaces"], "verbs": ["get"]},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations"],
            "verbs": ["list"],
        },
    ]
    status, _, complaint = said(accounts.make("asks", may_read).kubeconfig)
    assert status == 2
    assert "RBAC grants no `get` on `configmaps`" in complaint
    assert "--config" in complaint
