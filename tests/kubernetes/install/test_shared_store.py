"""Tests of the chart with its default store, which several servers share, with Helm at a real Kubernetes API.

Pods do not run here: the tests write the content of the Secret, as a server or the Job of an upgrade does.
`test_two_servers_on_node` has real Pods.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubernetes.tools.helm import CHART, Helm
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tools.real_parts.cluster import RunningCluster
from tools.release_before import unpacked

pytestmark = pytest.mark.usefixtures("helm_part")

RELEASE: Final = "meshwright"
CUSTODY: Final = ("secret", "meshwright-custody")
CLAIM: Final = ("persistentvolumeclaim", "state-meshwright-0")
RESTRICTED: Final = "pod-security.kubernetes.io/enforce=restricted"
CA: Final = '{"by":"a","fields":{"ca":{"certificate":"c"}}}'
MOVING: Final = '{"by":"a","fields":{"moving":{"root":"5f2c"}}}'


@dataclass(frozen=True)
class Installation:
    """A release in a namespace that enforces `restricted`, with a revision of its own."""

    helm: Helm
    kubectl: Kubectl

    def do(self, verb: str, *words: str) -> str:
        """Run a Helm command for the release."""
        return self.helm(verb, RELEASE, *words, "-n", self.kubectl.namespace)

    def words(self, *words: str) -> tuple[str, ...]:
        """Return arguments that choose values; definitions and names of the cluster are left to others."""
        chosen = ("crds.install=false", f"revision={self.kubectl.namespace}", *words)
        return tuple(word for item in chosen for word in ("--set", item))

    def pods(self, component: str, number: int) -> list[Document]:
        """Wait until a component has a number of Pods, and return these."""
        selector = f"app.kubernetes.io/component={component}"
        found = self.kubectl.until(lambda item: len(_here(item)) == number, "pods", "-l", selector)
        return _here(found)

    def jobs(self) -> dict[str, str]:
        """Return the claim that each Job of the release mounts, by the Job's name."""
        return {
            item["metadata"]["name"]: volume["persistentVolumeClaim"]["claimName"]
            for item in self.kubectl.get("jobs")["items"]
            for volume in item["spec"]["template"]["spec"]["volumes"]
            if "persistentVolumeClaim" in volume
        }

    def write(self, authority: str) -> None:
        """Write the record of the authority into the Secret, as a server does."""
        data = {"data": {"authority": base64.b64encode(authority.encode()).decode()}}
        self.kubectl("patch", *CUSTODY, "--type=merge", "-p", json.dumps(data))

    def custody(self) -> dict[str, Any]:
        """Return identity and data of the Secret."""
        found = self.kubectl.get(*CUSTODY)
        return {"uid": found["metadata"]["uid"], "data": found.get("data")}


def _here(found: Document) -> list[Document]:
    return [item for item in found["items"] if "deletionTimestamp" not in item["metadata"]]


@pytest.fixture
def installation(
    shared_cluster: RunningCluster, kubectl: Kubectl, tmp_path: Path, definitions: str
) -> Iterator[Installation]:
    """Return a release that is not installed yet."""
    del definitions
    kubectl("label", "namespace", kubectl.namespace, RESTRICTED)
    made = Installation(Helm(tmp_path, shared_cluster.kubeconfig), kubectl)
    yield made
    made.helm.run("uninstall", RELEASE, "-n", kubectl.namespace, "--ignore-not-found")


def test_two_servers_are_admitted_where_pods_are_restricted(installation: Installation) -> None:
    """They are spread, and the cluster accepts budget, Services and Secret without a warning."""
    installation.do("install", str(CHART), *installation.words())
    pods = installation.pods("control-plane", 2)
    for pod in pods:
        spread = pod["spec"]["topologySpreadConstraints"]
        assert [item["topologyKey"] for item in spread] == [
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        ]
        # The API server adds the hash of the template to the selector, so that an update counts its own Pods.
        hashes = {item["labelSelector"]["matchLabels"].get("pod-template-hash") for item in spread}
        assert hashes <= {None, pod["metadata"]["labels"]["pod-template-hash"]}
        assert all("persistentVolumeClaim" not in volume for volume in pod["spec"]["volumes"])
    budget = installation.kubectl.get("poddisruptionbudget", "meshwright")["spec"]
    assert budget["minAvailable"] == 1
    for name in ("meshwright", "meshwright-webhook"):
        assert installation.kubectl.get("service", name)["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    assert installation.custody()["data"] is None
    assert installation.jobs() == {}


def test_content_of_the_secret_survives_every_way_to_apply_the_chart(installation: Installation) -> None:
    """Helm upgrades, rolls back, uninstalls and installs again; kubectl applies on both sides."""
    words = installation.words()
    installation.do("install", str(CHART), *words)
    installation.write(CA)
    before = installation.custody()
    installation.do("upgrade", str(CHART), *words, "--set", "settings.log_level=debug")
    assert installation.custody() == before
    installation.do("rollback")
    assert installation.custody() == before
    kubectl = installation.kubectl
    printed = installation.do("template", str(CHART), *words)
    for how in ((), ("--server-side", "--force-conflicts")):
        kubectl("apply", *how, "-f", "-", given=printed)
        assert installation.custody() == before
    installation.do("uninstall")
    assert installation.custody() == before
    installation.do("install", str(CHART), *words)
    assert installation.custody() == before
    assert installation.jobs() == {}, "the mesh is in the store already"


def test_upgrade_moves_the_claim_of_the_release_before_once(installation: Installation) -> None:
    """One Job mounts the claim until the store has the CA, also after an interruption. The claim stays."""
    old = unpacked() / "deploy" / "chart" / "meshwright"
    installation.do("install", str(old), *installation.words())
    kubectl = installation.kubectl
    kubectl.until_there("pod", "meshwright-0")
    claim = kubectl.until_there(*CLAIM)["metadata"]["uid"]
    installation.do("upgrade", str(CHART), "--reuse-values")
    assert kubectl.found("deployment", "meshwright") is None, "values of before name no store"

    words = ("--reset-then-reuse-values", *installation.words())
    installation.do("upgrade", str(CHART), *words)
    (job,) = installation.jobs().items()
    assert job[1] == CLAIM[1]
    installation.pods("control-plane", 2)
    assert kubectl.found("statefulset", "meshwright") is None
    installation.pods("move", 1)
    installation.write(MOVING)
    installation.do("upgrade", str(CHART), *words)
    assert installation.jobs() == dict((job,)), "the same Job goes on"

    installation.write(CA)
    installation.do("upgrade", str(CHART), *words)
    assert installation.jobs() == {}
    assert kubectl.get(*CLAIM)["metadata"]["uid"] == claim


def test_way_back_needs_a_claim_with_the_mesh(installation: Installation) -> None:
    """A server with a new claim would make a new CA. Later, the next upgrade moves the claim again."""
    words = installation.words()
    installation.do("install", str(CHART), *words)
    installation.write(CA)
    back = ("upgrade", RELEASE, str(CHART), "-n", installation.kubectl.namespace)
    directory = installation.words("store=directory")
    refused = installation.helm.run(*back, *directory)
    assert refused.returncode != 0
    assert "the mesh is in the store kubernetes: move it back first" in refused.stderr
    kubectl = installation.kubectl
    assert kubectl.found("statefulset", "meshwright") is None
    kubectl.apply(_claim())
    installation.do("upgrade", str(CHART), *directory)
    assert kubectl.found("deployment", "meshwright") is None
    assert installation.custody()["data"], "Helm keeps the Secret"
    installation.do("upgrade", str(CHART), *words)
    assert [*installation.jobs().values()] == [CLAIM[1]]


def test_claim_that_would_be_deleted_with_its_server_is_not_moved(installation: Installation) -> None:
    """Before, the upgrade has to keep the claim, or the CA would be lost with an interrupted Job."""
    installation.do("install", str(CHART), *installation.words("store=directory", "persistence.keep=false"))
    kubectl = installation.kubectl
    kubectl.until_there(*CLAIM)
    upgrade = ("upgrade", RELEASE, str(CHART), "-n", kubectl.namespace)
    refused = installation.helm.run(*upgrade, *installation.words())
    assert refused.returncode != 0
    assert "upgrade with store=directory,persistence.keep=true first" in refused.stderr
    installation.do("upgrade", str(CHART), *installation.words("store=directory", "persistence.keep=true"))
    kubectl.until(lambda claim: not claim["metadata"].get("ownerReferences"), *CLAIM)
    installation.do("upgrade", str(CHART), *installation.words())
    assert [*installation.jobs().values()] == [CLAIM[1]]


def _claim() -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM[1]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
