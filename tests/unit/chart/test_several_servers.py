"""Tests of the rendered chart with the store that several servers share."""

import json
from pathlib import Path
from typing import Any

import pytest

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import chart, defaults, manifests
from meshwright.chart.template.tokens import TemplateError
from meshwright.controller.settings.chart import wrong
from meshwright.controller.settings.rules import OF_ONE_DIRECTORY
from meshwright.records.kubernetes.definition import DEFINITION
from meshwright.records.kubernetes.store import LEASE
from tests.tools import libyaml

SELECTOR = {
    "app.kubernetes.io/name": "meshwright",
    "app.kubernetes.io/instance": "meshwright",
    "app.kubernetes.io/component": "control-plane",
}
SHARED: dict[str, Any] = {"store": "kubernetes"}


def _objects(values: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    documents = [libyaml.load(manifest) for manifest in manifests(merged(defaults(), values), "mesh")]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def test_servers_are_alike_and_replaced_all_at_once() -> None:
    """A Deployment needs no volume, and an update starts all new Pods before it ends the first old one."""
    spec = _objects(SHARED)["Deployment", "meshwright"]["spec"]
    pod = spec.pop("template")["spec"]
    assert spec == {
        "replicas": 2,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
        "selector": {"matchLabels": SELECTOR},
    }
    assert pod["topologySpreadConstraints"] == [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": SELECTOR},
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    (container,) = pod["containers"]
    fields = {item["name"]: item["valueFrom"]["fieldRef"] for item in container["env"] if "valueFrom" in item}
    assert fields == {
        "POD_NAMESPACE": {"fieldPath": "metadata.namespace"},
        "POD_NAME": {"fieldPath": "metadata.name"},
        "POD_IP": {"fieldPath": "status.podIP"},
    }
    assert pod["volumes"] == [
        {"name": "settings", "configMap": {"name": "meshwright"}},
        {"name": "state", "emptyDir": {"sizeLimit": "1Gi"}},
    ]


def test_only_servers_reach_the_port_for_servers() -> None:
    """All other ports are for everybody. Each server has its own address, so the port has no Service."""
    policy = _objects(SHARED)["NetworkPolicy", "meshwright"]["spec"]
    everybody, servers = policy["ingress"]
    assert {port["port"] for port in everybody["ports"]} == {
        "ads",
        "enrolment",
        "renewal",
        "http",
        "webhook",
    }
    assert servers == {
        "from": [{"podSelector": {"matchLabels": SELECTOR}}],
        "ports": [{"protocol": "TCP", "port": "peers"}],
    }
    assert len(_objects({"store": "directory"})["NetworkPolicy", "meshwright"]["spec"]["ingress"]) == 1


def test_store_of_the_setting_is_that_of_the_objects() -> None:
    """The server is told the store, and the objects of the other store are left out."""
    for values, store, there, not_there in (
        ({}, "kubernetes", "Deployment", "StatefulSet"),
        (SHARED, "kubernetes", "Deployment", "StatefulSet"),
        ({"store": "directory"}, "directory", "StatefulSet", "Deployment"),
    ):
        objects = _objects(values)
        settings = libyaml.load(objects["ConfigMap", "meshwright"]["data"]["config.yaml"])
        assert settings.get("store", "directory") == store
        assert (there, "meshwright") in objects
        assert (not_there, "meshwright") not in objects
        of_store = {("Secret", "meshwright-custody"), ("Lease", LEASE), ("Role", "meshwright-shared-store")}
        assert of_store & {*objects} == (of_store if store == "kubernetes" else set())
        assert ("CustomResourceDefinition", DEFINITION["metadata"]["name"]) in objects
        assert not [name for kind, name in objects if kind == "Job"]


@pytest.mark.parametrize(
    ("keep", "annotations"), [(True, {"helm.sh/resource-policy": "keep"}), (False, None)]
)
def test_secret_of_the_ca_is_empty_and_kept(keep: bool, annotations: dict[str, str] | None) -> None:
    """Whoever applies it again has no field of its data, so that the content of the servers stays."""
    secret = _objects({**SHARED, "persistence": {"keep": keep}})["Secret", "meshwright-custody"]
    assert sorted(secret) == ["apiVersion", "kind", "metadata", "type"]
    assert secret["metadata"].get("annotations") == annotations


@pytest.mark.parametrize(
    ("values", "budget"),
    [
        (SHARED, {"minAvailable": 1}),
        ({**SHARED, "replicas": 5}, {"minAvailable": 1}),
        ({**SHARED, "replicas": 1}, None),
        ({**SHARED, "replicas": 1, "podDisruptionBudget": {"enabled": True}}, {"maxUnavailable": 0}),
        ({}, {"minAvailable": 1}),
        ({"store": "directory"}, None),
        ({"store": "directory", "podDisruptionBudget": {"enabled": True}}, {"maxUnavailable": 0}),
    ],
)
def test_drain_of_a_node_leaves_one_of_several_servers(
    values: dict[str, Any], budget: dict[str, int] | None
) -> None:
    """For one server the budget blocks the drain, so it is an option."""
    found = _objects(values).get(("PodDisruptionBudget", "meshwright"))
    expected = None if budget is None else {**budget, "selector": {"matchLabels": SELECTOR}}
    assert (found and found["spec"]) == expected


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 55),
        ({"shutdown_delay_seconds": 2, "shutdown_spread_seconds": 0.5, "drain_seconds": 1}, 29),
    ],
)
def test_kubelet_gives_a_server_of_several_the_time_to_hand_over(
    settings: dict[str, float], seconds: int
) -> None:
    """The server's defaults are 5 s before the end of the first stream, and 20 s until that of the last."""
    pod = _objects({**SHARED, "settings": settings})["Deployment", "meshwright"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == seconds


def test_job_of_an_upgrade_mounts_the_old_claim_and_is_no_server() -> None:
    """Services and budget select servers only. The Job has the settings and volumes of the servers."""
    values = {
        **SHARED,
        "persistence": {"moveClaim": "state-meshwright-0"},
        "extraVolumes": [{"name": "more", "secret": {"secretName": "more"}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "tolerations": [{"operator": "Exists"}],
        "imagePullSecrets": ["registry"],
    }
    objects = _objects(values)
    (name,) = (name for kind, name in objects if kind == "Job")
    assert name.startswith("meshwright-move-")
    template = objects["Job", name]["spec"]["template"]
    assert not SELECTOR.items() <= template["metadata"]["labels"].items()
    pod = template["spec"]
    server = objects["Deployment", "meshwright"]["spec"]["template"]["spec"]
    claim = {"name": "state", "persistentVolumeClaim": {"claimName": "state-meshwright-0"}}
    assert [volume for volume in pod["volumes"] if volume not in server["volumes"]] == [claim]
    equal = ("serviceAccountName", "securityContext", "tolerations", "imagePullSecrets")
    assert {field: pod[field] for field in equal} == {field: server[field] for field in equal}
    (container,), (of_server,) = pod["containers"], server["containers"]
    assert container["args"] == [
        "state",
        "move",
        "--config=/etc/meshwright/server/config.yaml",
        "--state=/state/meshwright",
        "--wait=300",
    ]
    for field in ("image", "imagePullPolicy", "securityContext", "volumeMounts"):
        assert container[field] == of_server[field]


def test_another_image_makes_another_job() -> None:
    """A Job cannot be changed, so the same name would fail the upgrade."""
    names = [
        name
        for tag in ("1", "2", "1")
        for kind, name in _objects(
            {**SHARED, "image": {"tag": tag}, "persistence": {"moveClaim": "state-meshwright-0"}}
        )
        if kind == "Job"
    ]
    assert names[0] == names[2] != names[1]


def test_values_of_an_older_chart_mean_a_directory() -> None:
    """`helm upgrade --reuse-values` gives the chart values without the new ones, and so moves nothing."""
    values = merged(defaults(), {"store": None, "replicas": None})
    kinds = {libyaml.load(manifest)["kind"] for manifest in manifests(values)}
    assert "StatefulSet" in kinds
    assert "Deployment" not in kinds


def test_chart_refuses_the_settings_that_a_server_of_several_refuses(tmp_path: Path) -> None:
    """The server would refuse them too, but the upgrade has ended the server of the directory by then."""
    refused = {*OF_ONE_DIRECTORY, "store"}
    for name in refused:
        with pytest.raises(TemplateError, match="store"):
            _objects({**SHARED, "settings": {name: "x"}})
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    others = {*schema["properties"]["settings"]["properties"]} - refused
    _objects({**SHARED, "settings": dict.fromkeys(others, 1)})
    settings = _objects(SHARED)["ConfigMap", "meshwright"]["data"]["config.yaml"]
    assert wrong(libyaml.load(settings), tmp_path) == ""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"store": "directory", "replicas": 2}, "replicas must be 1 with store directory"),
        ({"settings": {"store": "kubernetes"}}, "settings.store must not be set"),
    ],
)
def test_values_that_contradict_each_other_are_refused(values: dict[str, Any], said: str) -> None:
    """Two servers of one directory, and a setting without its objects, would fail at their start."""
    with pytest.raises(TemplateError, match=said):
        _objects(values)
