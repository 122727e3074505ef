"""Tests that the control plane, its injector and the CNI plug-in accept the configuration of the chart."""

from pathlib import Path
from typing import Any

import pytest

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import defaults, manifests
from meshwright.controller.settings.settings import load
from meshwright.controller.sharing.peers.address import DEFAULT
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig, read
from meshwright.mesh.names import Namespace
from meshwright.providers.kubernetes.scope import selector
from meshwright.sidecars.contract.pod import RulesOwner
from tests.tools import libyaml
from tests.tools.forked_cli import ROOT


def _found(kind: str, name: str, values: dict[str, Any], namespace: str) -> dict[str, Any]:
    documents = (libyaml.load(manifest) for manifest in manifests(merged(defaults(), values), namespace))
    (result,) = (
        document for document in documents if (document["kind"], document["metadata"]["name"]) == (kind, name)
    )
    return dict(result)


def _pod(kind: str, name: str, values: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = _found(kind, name, values, "mesh")["spec"]["template"]["spec"]
    return result


def test_server_reads_the_settings_of_the_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server reads the cluster except the system's namespaces and its own.

    Additional settings are added, and ports of the container equal the addresses. Other servers use a port of
    their own.
    """
    values = {"settings": {"log_level": "debug"}, "revision": "next"}
    config = _found("ConfigMap", "meshwright", values, "mesh")
    (tmp_path / "config.yaml").write_text(config["data"]["config.yaml"])
    (container,) = _pod("Deployment", "meshwright", {})["containers"]
    for item in container["env"]:
        if "value" in item:
            monkeypatch.setenv(item["name"], item["value"])
    assert container["args"] == ["serve", "--config=/etc/meshwright/server/config.yaml"]
    settings = load({"config": str(tmp_path / "config.yaml")})
    assert settings.sources == ("a Kubernetes cluster",)
    assert (settings.log_level, settings.enrolment_proofs) == ("debug", ("kubernetes",))
    assert (settings.injection, settings.revision) == (True, "next")
    place = settings.injection_config_map
    assert place is not None
    made = _found("ConfigMap", place.name, {}, place.namespace)
    assert (place.namespace, place.key in made["data"]) == ("mesh", True)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    host_ports = {
        "ads": settings.ads_address,
        "enrolment": settings.enrolment_address,
        "renewal": settings.renewal_address,
        "http": settings.http_address,
        "webhook": settings.webhook_address,
    }
    assert ports.pop("peers") == DEFAULT.port
    assert ports == {name: host_port.port for name, host_port in host_ports.items() if host_port is not None}
    requirements = selector(settings.namespace_selector)
    names = ("shop", "default", "kube-system", "mesh")
    fit = [name for name in names if all(r.fits({"kubernetes.io/metadata.name": name}) for r in requirements)]
    assert fit == ["shop", "default"]


def _injection(**values: Any) -> InjectionConfig:
    fields = {"injection": {"enabled": True, **values.pop("injection", {})}, **values}
    config = _found("ConfigMap", "meshwright-injection", fields, "mesh")
    return read(libyaml.load(config["data"]["config.yaml"]), "config.yaml")


def test_injector_reads_the_configuration_of_the_chart() -> None:
    """Image, namespace and owner of the rules follow the values, and `injection.config` takes precedence."""
    made = _injection()
    chart = libyaml.load((ROOT / "deploy/chart/meshwright/Chart.yaml").read_text("utf-8"))
    image = f"meshwright/proxy:{chart['appVersion']}"
    assert (made.image, made.control_plane_namespace) == (image, Namespace("mesh"))
    assert made.rules_by is RulesOwner.INIT_CONTAINER
    injection_config = _injection(
        cni={"enabled": True},
        imagePullSecrets=["registry"],
        injection={"config": {"policy": "disabled", "sidecar": {"image": "mine:1"}}},
    )
    assert injection_config.rules_by is RulesOwner.CNI
    assert (injection_config.image, injection_config.pull_secrets, injection_config.policy) == (
        "mine:1",
        ("registry",),
        "disabled",
    )


@pytest.mark.parametrize(("said", "name"), [({}, "meshwright-roots"), ({"roots_config_map": "mine"}, "mine")])
def test_roots_config_map_has_one_name_everywhere(said: dict[str, str], name: str) -> None:
    """The server that writes the ConfigMap, the role, and the pods that mount it agree on the name."""
    values = {"settings": said}
    assert _injection(**values).joining.roots_config_map == name
    role = _found("ClusterRole", "meshwright-joining", values, "mesh")
    (rule,) = (item for item in role["rules"] if item["resources"] == ["configmaps"])
    assert rule["resourceNames"] == [name]


def test_cni_daemon_set_equals_the_documented_manifest() -> None:
    """Only the image differs."""
    documents = libyaml.load_all((ROOT / "docs" / "kubernetes" / "cni.yaml").read_text("utf-8"))
    (expected,) = (
        document["spec"]["template"]["spec"] for document in documents if document["kind"] == "DaemonSet"
    )
    result = _pod("DaemonSet", "meshwright-cni", {"cni": {"enabled": True, "namespace": "meshwright-system"}})
    for item in (result, expected):
        for name in ("image", "imagePullPolicy"):
            item["containers"][0].pop(name, None)
    assert result == expected


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 30),
        ({"drain_seconds": 60}, 85),
        ({"shutdown_delay_seconds": 5, "shutdown_spread_seconds": 20.5}, 56),
    ],
)
def test_kubelet_waits_for_the_end_of_all_streams(settings: dict[str, float], seconds: int) -> None:
    """The Pod gets the times of the settings and 25 s more; the default equals Kubernetes' own."""
    pod = _pod("StatefulSet", "meshwright", {"store": "directory", "settings": settings})
    assert pod["terminationGracePeriodSeconds"] == seconds
