"""Tests that an installation of the release before is upgraded and rolled back, at a real Kubernetes API.

Pods do not run here: the tests write the status of a Pod, and the content that a server gives to webhooks.
`test_chart_on_node` has the same upgrade on a node.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubernetes.tools import kubectl as tool
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.api_kinds import Kinds
from tests.kubernetes.tools.api_requests import JSON, STRICT, Asking, path
from tests.kubernetes.tools.helm import CHART, Helm
from tests.kubernetes.tools.kubectl import Kubectl, has_condition
from tests.kubernetes.tools.objects import Document
from tests.tools import libyaml
from tests.tools.forked_cli import Command, Typed
from tools.real_parts.cluster import cluster
from tools.release_before import unpacked

HOME: Final = "meshwright-system"
CRDS: Final = ("crd", "-l", "app.kubernetes.io/name=meshwright")
WEBHOOKS: Final = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
NAMESPACED: Final = (
    "configmaps,services,serviceaccounts,statefulsets,persistentvolumeclaims,secrets,roles,rolebindings,"
    "networkpolicies"
)
CLUSTER_WIDE: Final = ",".join(("clusterroles", "clusterrolebindings", *WEBHOOKS))
KEPT: Final = ("PersistentVolumeClaim", "Secret")
"""Kinds of objects that are not the chart's."""
HELMS_OWN: Final = "helm.sh/release.v1"
"""Type of the Secrets in which Helm keeps the revisions of a release."""


@dataclass(frozen=True)
class Site:
    """A cluster, its administrator, and requests to its API."""

    administrator: Kubectl
    ask: Asking
    helm: Helm

    @property
    def home(self) -> Kubectl:
        """Return kubectl in the namespace of the control plane."""
        return replace(self.administrator, namespace=HOME)


@pytest.fixture(scope="module")
def site(parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a cluster of these tests alone, because they delete definitions."""
    folder = tmp_path_factory.mktemp("upgraded")
    with cluster(folder / "cluster", controlled=True) as started, Asking(started) as ask:
        made = Kubectl(tool.program() or "", started.kubeconfig, folder, kinds=Kinds(ask))
        yield Site(made, ask, Helm(folder, started.kubeconfig))


@pytest.fixture(autouse=True)
def _clean(site: Site) -> Iterator[None]:
    """Remove the definitions and the other objects of the cluster as a whole that a test has created."""
    yield
    site.administrator("delete", *CRDS, "--ignore-not-found")
    for kinds in ("clusterroles,clusterrolebindings", ",".join(WEBHOOKS)):
        site.administrator(
            "delete", kinds, "-l", "app.kubernetes.io/part-of=meshwright", "--ignore-not-found"
        )


@pytest.fixture(scope="module")
def release_before() -> Path:
    """Return the folder with the packages, the chart and the examples of the release before."""
    return unpacked()


@pytest.fixture(scope="module")
def before(release_before: Path) -> Iterator[Typed]:
    """Start the process that runs commands of the release before."""
    with Typed(release_before) as started:
        yield started


@dataclass(frozen=True)
class Policy:
    """An object of every kind, in every version of the examples of the release before."""

    examples: tuple[Document, ...]

    @classmethod
    def of(cls, release: Path, site: Site) -> "Policy":
        """Create an object from each example of a kind that the installed release defines."""
        defined = {item["spec"]["names"]["kind"] for item in site.administrator.get(*CRDS)["items"]}
        folder = release / "meshwright" / "specs" / "reference" / "examples"
        found = [
            document
            for file in sorted(folder.glob("*.yaml"))
            for document in libyaml.load_all(file.read_text("utf-8"))
            if document["kind"] in defined
        ]
        assert {document["kind"] for document in found} == defined
        made = []
        for number, document in enumerate(found):
            metadata = {"name": f"kept-{number}", "namespace": "default"}
            metadata |= {key: document["metadata"].get(key, {}) for key in ("labels", "annotations")}
            made.append({**document, "metadata": metadata})
            assert site.ask.create(made[-1]).status == 201
        return cls(tuple(made))

    def read(self, site: Site) -> list[Document]:
        """Return each object as the API server shows it; each must still be valid."""
        result = []
        for example in self.examples:
            answer = site.ask("GET", path(example))
            assert answer.status == 200, answer.message
            shown = dict(answer.body)
            again = site.ask("PUT", f"{path(example)}?dryRun=All&{STRICT}", shown, JSON)
            assert (again.status, again.warnings) == (200, ()), (example, again.message)
            result.append(shown)
        return result


def stored(site: Site) -> dict[str, list[str]]:
    """Wait until all definitions are established; return the stored versions of each."""

    def are_established(result: Document) -> bool:
        return bool(result["items"]) and all(has_condition(item, "Established") for item in result["items"])

    result = site.administrator.until(are_established, *CRDS)["items"]
    for item in result:
        versions = [version["name"] for version in item["spec"]["versions"]]
        assert not has_condition(item, "NonStructuralSchema"), item["metadata"]["name"]
        assert set(item["status"]["storedVersions"]) <= set(versions)
    return {item["metadata"]["name"]: item["status"]["storedVersions"] for item in result}


def printed(typed: Typed, folder: Path, *words: str) -> str:
    """Return the output of a command of a release."""
    done = typed.run(Command(folder, words, {}), 60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Release:
    """An installation by Helm, with objects as a running server and a user make them."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def do(self, verb: str, *words: str) -> None:
        """Run a Helm command for the release, and wait for the definitions."""
        self._site.helm(verb, "meshwright", *words, "-n", HOME)
        stored(self._site)

    def serve(self) -> None:
        """Make the Pod ready, register webhooks, and write a Secret, as a server does."""
        home = self._site.home
        home.until_there("pod", "meshwright-0")
        home.status(objects.runs("meshwright-0", "10.244.1.1"))
        home.until(lambda found: found["status"].get("readyReplicas") == 1, "statefulset", "meshwright")
        for kind, name in (
            ("ValidatingWebhookConfiguration", "policy"),
            ("MutatingWebhookConfiguration", "pods"),
        ):
            home.apply(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": kind,
                    "metadata": {"name": "meshwright"},
                    "webhooks": [_webhook(f"{name}.meshwright.dev")],
                }
            )
        secret = {"name": "gateway-certificate", "labels": {"app.kubernetes.io/managed-by": "meshwright"}}
        home.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": {"tls.key": "kept"}}
        )

    def image(self) -> str:
        """Wait until the Pod is that of the StatefulSet, and return its image."""
        home = self._site.home
        wanted = _image(home.get("statefulset", "meshwright")["spec"]["template"])
        return _image(home.until(lambda pod: _image(pod) == wanted, "pod", "meshwright-0"))

    def identities(self) -> dict[tuple[str, str], str]:
        """Return the UID of each object of the release, and of the volume claim and the Secret."""
        home = self._site.home
        found = json.loads(home("get", NAMESPACED, "-o", "json"))["items"]
        found += json.loads(home("get", f"crd,{CLUSTER_WIDE}", "-o", "json"))["items"]
        return {
            (item["kind"], item["metadata"]["name"]): item["metadata"]["uid"]
            for item in found
            if item.get("type") != HELMS_OWN
            and (
                item["kind"] in KEPT or "meta.helm.sh/release-name" in item["metadata"].get("annotations", {})
            )
        }

    def webhooks(self) -> list[Any]:
        """Return the content of both webhook configurations."""
        return [self._site.home.get(kind, "meshwright")["webhooks"] for kind in WEBHOOKS]


def _image(pod: Document) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def _webhook(name: str) -> Document:
    """Return a webhook that no request reaches."""
    rule = {"apiGroups": ["unused.example"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}
    return {
        "name": name,
        "rules": [rule],
        "clientConfig": {"url": "https://unused.example", "caBundle": "a2VwdA=="},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }


def version(chart: Path) -> str:
    """Return the version of the images that a chart installs."""
    return str(libyaml.load((chart / "Chart.yaml").read_text("utf-8"))["appVersion"])


@pytest.mark.usefixtures("helm_part")
def test_helm_upgrades_and_rolls_back_an_installation(site: Site, release_before: Path) -> None:
    """No object is created again, and the content of webhooks, Secret and policy stays as it is.

    The store stays a directory; `test_shared_store` has the upgrade with the default store. The Pod of
    the upgrade is never ready, as with an image that cannot be pulled. Kubernetes then replaces the Pod only
    after it was deleted, as the docs say.
    """
    old, release = release_before / "deploy" / "chart" / "meshwright", Release(site)
    release.do("install", str(old), "--create-namespace", "--set", "settings.log_level=debug")
    release.serve()
    policy = Policy.of(release_before, site)
    written, versions = policy.read(site), stored(site)
    identities, webhooks = release.identities(), release.webhooks()
    assert {kind for kind, _ in identities} >= {"StatefulSet", "PersistentVolumeClaim", "Secret"}
    assert release.image() == f"meshwright/control-plane:{version(old)}"

    release.do("upgrade", str(CHART), "--reset-then-reuse-values", "--set", "store=directory")
    assert release.image() == f"meshwright/control-plane:{version(CHART)}"
    upgraded = release.identities()
    assert {name: upgraded.get(name) for name in identities} == identities
    assert release.webhooks() == webhooks
    assert policy.read(site) == written
    assert {name: stored(site)[name] for name in versions} == versions
    assert "log_level: debug" in site.home.get("configmap", "meshwright")["data"]["config.yaml"]

    release.do("rollback")
    site.home("delete", "pod", "meshwright-0")
    assert release.image() == f"meshwright/control-plane:{version(old)}"
    definitions = {name: uid for name, uid in upgraded.items() if name[0] == "CustomResourceDefinition"}
    assert release.identities() == {**identities, **definitions}, "Helm keeps the new definitions too"
    assert release.webhooks() == webhooks
    assert policy.read(site) == written
    assert {name: stored(site)[name] for name in versions} == versions


@pytest.mark.usefixtures("helm_part")
def test_upgrade_is_refused_if_servers_would_wait_for_their_definition(
    site: Site, release_before: Path
) -> None:
    """With `crds.install=false` the cluster lacks the definition of records, which only a new store needs."""
    old = release_before / "deploy" / "chart" / "meshwright"
    release = ("meshwright", "-n", "undefined", "--set", "crds.install=false")
    site.helm("install", *release, str(old), "--create-namespace")
    try:
        refused = site.helm.run("upgrade", *release, str(CHART))
        assert refused.returncode != 0
        assert "crds.install is false: run `meshwright crds --kind Record | kubectl apply" in refused.stderr
        assert "or set store to directory" in refused.stderr
        site.helm("upgrade", *release, str(CHART), "--set", "store=directory", "--dry-run=server")
    finally:
        site.helm("uninstall", *release[:3])


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("crds",), ("--server-side", "--force-conflicts")),
        (("install", "--print", "--namespace", "printed"), ()),
    ],
    ids=["crds", "install"],
)
def test_objects_stay_while_kubectl_applies_the_definitions_of_another_release(
    site: Site,
    before: Typed,
    typed: Typed,
    release_before: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    flags: tuple[str, ...],
) -> None:
    """All objects are shown as they were written, and stay valid, after upgrade and rollback."""
    manifests = {release: printed(release, tmp_path, *words) for release in (before, typed)}

    def applied(release: Typed) -> dict[str, list[str]]:
        site.administrator("apply", *flags, "-f", "-", given=manifests[release])
        return stored(site)

    first = applied(before)
    policy = Policy.of(release_before, site)
    written = policy.read(site)
    for release in (typed, before):
        assert {name: versions for name, versions in applied(release).items() if name in first} == first
        assert policy.read(site) == written
