"""Test of the README's commands for a cluster, run exactly as written, on a node whose Pods run.

The images are loaded beforehand, instead of the commands of docker and kind. The manifests are the demo's,
under the names of Open Service Mesh's files. `make newcomer` runs this test, because it takes two minutes;
tests/unit/docs/test_cluster_commands.py compares the commands with files and pages.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from demo.kubernetes import images
from demo.kubernetes.cluster import volume
from demo.kubernetes.store import applications, with_image
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.kubernetes.tools.helm import CHART
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools import envoy, libyaml
from tests.tools.forked_cli import ROOT
from tools.real_parts.building import program
from tools.real_parts.images import own_images
from tools.real_parts.node import Node
from tools.real_parts.parts import HELM

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("helm_part"),
    pytest.mark.skipif(os.environ.get("MESHWRIGHT_SOAK") != "long", reason="make newcomer runs it"),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
HOME = "meshwright-system"
POLICIES = ROOT / "demo" / "manifests" / "access" / "traffic-access-v1.yaml"
ELSEWHERE = ("docker ", "kind ", "OSM=")
"""How commands begin that are done beforehand: the images, and where Open Service Mesh's manifests are."""


@pytest.fixture
def cluster(real_node: Node, node_administrator: Kubectl) -> Iterator[Node]:
    """Return a node with the images and a volume; the README's installation is removed from it at the end."""
    tag = libyaml.load((CHART / "Chart.yaml").read_text("utf-8"))["appVersion"]
    real_node.load(own_images.control_plane(tag))
    real_node.load(own_images.proxy(tag, Path(envoy.program() or "")))
    real_node.load(images.bookstore())
    # Helm refuses objects of others, such as the Lease of a server of another test.
    node_administrator("delete", "namespace", HOME, "--ignore-not-found")
    node_administrator.apply(volume(real_node))
    yield real_node
    node_administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright", "--ignore-not-found")
    node_administrator("delete", "namespace", HOME, "--ignore-not-found")
    node_administrator("delete", "persistentvolume", "--all", "--wait=false")


class Newcomer:
    """A shell in the checkout, with kubectl and Helm of a cluster, and with the manifests at `$OSM`."""

    def __init__(self, on: Node, kubectl: Kubectl, folder: Path) -> None:
        manifests, programs = folder / "manifests", folder / "bin"
        _write_manifests(manifests)
        programs.mkdir()
        made = on.cluster
        for name, words in {
            "kubectl": [kubectl.program, f"--cache-dir={folder}/cache"],
            "helm": [str(program(HELM))],
        }.items():
            called = shlex.join([*made.enter, *words, f"--kubeconfig={made.kubeconfig}"])
            (programs / name).write_text(f'#!/bin/sh\nexec {called} "$@"\n', "utf-8")
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = {"PATH": path, "HOME": str(folder), "OSM": str(manifests)}

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command; return its status and the output of both streams."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )


def _write_manifests(folder: Path) -> None:
    """Write the demo's manifests under the names of Open Service Mesh's files."""
    for name in ("apps", "access"):
        (folder / name).mkdir(parents=True)
    (folder / "access" / POLICIES.name).write_text(POLICIES.read_text("utf-8"), "utf-8")
    files: dict[str, list[object]] = {}
    for application in applications():
        name, namespace = application["metadata"]["name"], application["metadata"]["namespace"]
        file = name if name in ("mysql", "bookstore-v2") else namespace
        files.setdefault(file, []).append(with_image(application, images.BOOKSTORE))
    for file, documents in files.items():
        (folder / "apps" / f"{file}.yaml").write_text(yaml.safe_dump_all(documents), "utf-8")


def _commands() -> list[str]:
    """Return the commands of the README's block about Kubernetes."""
    text = (ROOT / "README.md").read_text("utf-8").partition("### Kubernetes\n")[2].partition("\n##")[0]
    (block,) = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = block.replace("\\\n", "").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_readme_commands_lead_to_a_denial_and_an_answer(
    cluster: Node, node_administrator: Kubectl, tmp_path: Path
) -> None:
    """The documented denial, explanation and answer appear, and the last commands remove everything.

    Only `explain` has a status other than 0. No command prints a warning, because a newcomer stops at the
    first one.
    """
    newcomer = Newcomer(cluster, node_administrator, tmp_path)
    typed = [item for item in _commands() if not item.startswith(ELSEWHERE)]
    done = []
    try:
        for command in typed:
            done.append(newcomer.type(command))
            assert done[-1].returncode == int(" explain " in command), (command, done[-1].stdout)
    finally:
        removed = [
            newcomer.type("kubectl delete -f docs/examples/bookstore-namespaces.yaml"),
            newcomer.type(f"helm uninstall meshwright -n {HOME} --wait"),
        ]
    assert [line for result in done for line in result.stdout.splitlines() if "Warning" in line] == []
    *_, denied, explained, _, answered = [result.stdout for result in done]
    assert re.fullmatch(r"Error fetching http://bookstore\.bookstore:14001/\S+: refused\n", denied)
    assert "No TrafficTarget has the destination bookstore/bookstore.\n" in explained
    assert re.fullmatch(r"Status: 200 \(http://bookstore\.bookstore:14001/\S+\)\n", answered)
    assert [result.returncode for result in removed] == [0, 0]
