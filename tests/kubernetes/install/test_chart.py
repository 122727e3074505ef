"""Tests that Helm and `meshwright install --print` render the same objects from the same values."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import defaults, manifests
from tests.kubernetes.tools.helm import CHART, Helm, objects
from tests.tools.forked_cli import Command, Typed

pytestmark = pytest.mark.usefixtures("helm_part")

HOME: Final = "meshwright-system"
SWITCHED: Final = (
    {"webhook": {"enabled": False}, "injection": {"enabled": False}},
    {"injection": {"enabled": False}},
    {"revision": "next", "crds": {"install": False}},
    {"store": "directory", "crds": {"keep": False}, "persistence": {"enabled": False}},
    {"store": "directory", "persistence": {"storageClassName": "fast", "size": "5Gi", "keep": False}},
    {"settings": {"roots_config_map": "mine"}, "injection": {"enabled": True}},
    {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": True}},
    {"store": "directory", "podDisruptionBudget": {"enabled": True}},
    {"serviceMonitor": {"enabled": True, "labels": {"release": "on"}}, "dashboards": {"enabled": True}},
    {"prometheusRule": {"enabled": True, "labels": {"release": "on"}}},
    {"certManager": {"enabled": True, "issuer": "ClusterIssuer/mesh"}},
    {"certManager": {"enabled": True, "issuer": "Issuer/mesh", "namespace": "1234"}},
    {
        "revision": "canary",
        "ingressGateway": {
            "secrets": [{"name": "tls", "namespace": "ingress"}, {"name": "1.0", "namespace": "1234"}]
        },
    },
    {
        "image": {"registry": "registry.example:5000/mesh", "tag": "1e3", "pullPolicy": "Never"},
        "proxyImage": {"repository": "p", "tag": "1.10"},
        "imagePullSecrets": ["registry", "1"],
        "cni": {"enabled": True, "programs": "/var/lib/cni", "resources": {}},
        "injection": {"enabled": True},
    },
    {
        "settings": {
            "log_level": "debug",
            "bytes_per_certificate": 20971520,
            "quiet_seconds": 0.25,
            "namespace_selector": "team in (a,b)",
            "kubernetes_reports": False,
            "namespaces": ["1e3", "on", "0x10", "~", "a: b", "ü<&>"],
            "providers": {"deep": {"deeper": [1, {"deepest": ""}]}, "none": []},
        },
        "injection": {
            "enabled": True,
            "config": {"policy": "disabled", "sidecar": {"image": "mine:1", "resources": {}}, "mesh": "no"},
        },
    },
    {
        "resources": {},
        "nodeSelector": {"disk": "on"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"x": [1, 2]}},
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"a/b": "1", "c": "x\ny"},
        "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca", "defaultMode": 288}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
    },
    {"store": "directory"},
    {
        "store": "kubernetes",
        "replicas": 3,
        "persistence": {"keep": False, "moveClaim": "old"},
        "settings": {
            "shutdown_delay_seconds": 0,
            "shutdown_spread_seconds": 7.5,
            "key_passphrase_file": "/p",
        },
        "extraVolumes": [{"name": "p", "secret": {"secretName": "p"}}],
        "extraVolumeMounts": [{"name": "p", "mountPath": "/p"}],
        "priorityClassName": "high",
    },
    {"store": "kubernetes", "replicas": 1, "podDisruptionBudget": {"enabled": True}},
    {"resources": None, "dashboards": {"enabled": True, "labels": {"grafana_dashboard": None, "x": "y"}}},
)
"""Values that between them switch everything, and say what can be misread."""


def _both(
    helm: Helm, typed: Typed, folder: Path, *words: str, namespace: str = HOME
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the objects of Helm and of our command for the same arguments."""
    theirs = helm("template", "meshwright", str(CHART), "--namespace", namespace, *words)
    done = typed.run(Command(folder, ("install", "--print", "--namespace", namespace, *words), {}), 60)
    assert done.returncode == 0, done.stderr
    ours = objects(done.stdout)
    assert ours.pop(("Namespace", namespace))["metadata"]["name"] == namespace
    return objects(theirs), ours


def test_helm_lint_reports_nothing(helm: Helm) -> None:
    """`helm lint --strict` has no warning and no error for the chart."""
    text = helm("lint", "--strict", str(CHART))
    assert "[WARNING]" not in text
    assert "[ERROR]" not in text


@pytest.mark.parametrize("values", [{}, *SWITCHED], ids=json.dumps)
def test_rendered_manifests_equal_those_of_helm(values: dict[str, Any], helm: Helm, tmp_path: Path) -> None:
    """The objects are equal, field by field."""
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    theirs = helm("template", "meshwright", str(CHART), "-n", HOME, "--values", str(tmp_path / "values.yaml"))
    ours = "---\n".join(manifests(merged(defaults(), values)))
    assert objects(ours) == objects(theirs)


def test_command_line_values_take_precedence_as_with_helm(helm: Helm, typed: Typed, tmp_path: Path) -> None:
    """They override values files, of which the later overrides the earlier.

    The namespace's name looks like a number.
    """
    for name, value in (("a", {"image": {"tag": "a", "registry": "a"}}), ("b", {"image": {"tag": "b"}})):
        (tmp_path / name).write_text(yaml.safe_dump(value))
    files = ("--values", str(tmp_path / "a"), "--values", str(tmp_path / "b"))
    words = (r"nodeSelector.a\.b/c=d\,e,imagePullSecrets={x,y}", "crds.install=false", "resources=null")
    messages = [item for word in (*words, "settings.max_streams=100") for item in ("--set", word)]
    theirs, ours = _both(helm, typed, tmp_path, *files, *messages, namespace="1234")
    assert ours == theirs
    (pod,) = (item["spec"]["template"]["spec"] for (kind, _), item in ours.items() if kind == "Deployment")
    assert pod["containers"][0]["image"] == "a/meshwright/control-plane:b"
    assert pod["nodeSelector"] == {"a.b/c": "d,e"}


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("image.name=x", "image"),
        ("typo=1", "typo"),
        ("settings.log_lvl=debug", "log_lvl"),
        ("persistence.enabled=maybe", "persistence"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("webhook.enabled=false", "injection.enabled needs webhook.enabled"),
        ("certManager.enabled=true", "certManager.issuer"),
        ("settings.store=kubernetes", "settings.store must not be set"),
        ("store=directory,replicas=2", "replicas must be 1 with store directory"),
        ("store=disk", "store"),
        ("replicas=0", "replicas"),
    ],
)
def test_helm_and_install_refuse_the_same_values(
    word: str, named: str, helm: Helm, typed: Typed, tmp_path: Path
) -> None:
    """Both fail and name the value."""
    theirs = helm.run("template", "meshwright", str(CHART), "--set", word)
    ours = typed.run(Command(tmp_path, ("install", "--print", "--set", word), {}), 60)
    assert (theirs.returncode != 0, ours.returncode) == (True, 2)
    assert named in theirs.stderr
    assert named in ours.stderr
