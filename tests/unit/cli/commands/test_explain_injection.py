"""Tests of `meshwright explain-injection --file` with all kinds of workloads and Lists."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.tools.forked_cli import ROOT, Done

Run = Callable[..., Done]
KINDS = ROOT / "tests" / "unit" / "kubernetes" / "injection" / "cases" / "kinds.yaml"
IMAGE = {"MESHWRIGHT_SIDECAR_IMAGE": "proxy:1"}


def test_each_workload_of_a_file_is_explained_in_order(run: Run, tmp_path: Path) -> None:
    """The workloads are those that `inject` accepts, in their order; objects without pods are skipped."""
    shutil.copy(KINDS, tmp_path / "kinds.yaml")
    done = run("explain-injection", "-f", "kinds.yaml", "--json", **IMAGE)
    objects = json.loads(done.stdout)["objects"]
    assert done.returncode == 0
    assert [item["object"].replace("default/", "") for item in objects] == [
        "Pod pod",
        "Deployment deployment",
        "ReplicaSet replicaset",
        "StatefulSet statefulset",
        "DaemonSet daemonset",
        "Job job",
        "CronJob cronjob",
        "ReplicationController replicationcontroller",
        "PodTemplate podtemplate",
        "Pod in-a-list-",
    ]
    assert {item["result"] for item in objects} == {"injected"}
    shown = run("explain-injection", "-f", "kinds.yaml", **IMAGE).stdout
    assert shown.startswith("Pod default/pod\n  Rules of the decision:\n")
    assert "\n\nCronJob default/cronjob\n  Rules of the decision:\n" in shown


def test_workload_without_injection_gives_status_1(run: Run, tmp_path: Path) -> None:
    """A namespace in the same file is used.

    A Job with a classic sidecar gets a warning, because it would not end.
    """
    (tmp_path / "config.yaml").write_text("sidecar: {image: 'proxy:1', placement: classic}\n")
    (tmp_path / "two.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\n"
        "metadata: {name: shop, annotations: {openservicemesh.io/sidecar-injection: disabled}}\n---\n"
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: ends}\n"
        "spec: {template: {spec: {containers: [{name: a, image: 'a:1'}], restartPolicy: Never}}}\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: store, namespace: shop}\n"
        "spec: {template: {spec: {containers: [{name: a, image: 'a:1'}]}}}\n"
    )
    done = run("explain-injection", "-f", "two.yaml", "--config", "config.yaml")
    assert done.returncode == 1
    assert "  warning: a sidecar as an ordinary container does not end by itself" in done.stdout
    text = "the namespace's annotation openservicemesh.io/sidecar-injection is disabled"
    assert done.stdout.splitlines()[-1] == f"  Result: skipped: {text}"


def test_file_without_pods_and_workload_without_template_are_errors(run: Run, tmp_path: Path) -> None:
    """Both have status 2, and the error names the object and the missing field."""
    (tmp_path / "none.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
    assert run("explain-injection", "-f", "none.yaml").returncode == 2
    (tmp_path / "half.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}\n"
    )
    done = run("explain-injection", "-f", "half.yaml")
    assert (done.returncode, "Deployment default/a: spec.template must be a Pod" in done.stderr) == (2, True)
