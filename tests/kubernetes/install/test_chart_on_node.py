"""Test of the chart on a real node: install, upgrade, rollback and uninstall without leftovers.

The first installation is the release before this one: its chart, control plane and sidecars. The store stays
a directory, because a rollback alone does not move the state back.
`test_two_servers_on_node` has the default store.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubernetes.cni.test_cni import ENFORCE, NO_RIGHT
from tests.kubernetes.conftest import namespaced
from tests.kubernetes.tools.containers import PYTHON, application, pod
from tests.kubernetes.tools.helm import CHART, Helm
from tests.kubernetes.tools.kubectl import SECONDS, Kubectl
from tests.kubernetes.tools.objects import Document, account, routes, service, target
from tests.tools import envoy
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import Command, Commands, Networked, Typed
from tools.real_parts.images import own_images
from tools.real_parts.node import Node
from tools.real_parts.node_flags import CNI_NETWORKS, CNI_PLUGINS, NODE
from tools.release_before import before as version_before
from tools.release_before import unpacked

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("helm_part"),
]

HOME: Final = "meshwright-system"
_VOLUME: Final = "/run/meshwright-volume"
BEFORE, NOW = "before", "now"
"""Tags of the images of the release before, and of this clone."""
_SWITCHES: Final = ("cni", "podDisruptionBudget", "dashboards")
_WRITTEN_BY_OTHERS: Final = ("events", "events.events.k8s.io", "leases.coordination.k8s.io")
"""What comes and goes with whatever happens on a cluster."""


def values(tag: str, identity: str = "token", *, cni: bool = False, **settings: str) -> Document:
    """Return the chart's values. A stopping server ends proxies' streams at once, not after 5 s."""
    image = {"tag": tag, "pullPolicy": "Never"}
    return {
        "image": image,
        "proxyImage": image,
        "persistence": {"keep": False},
        "cni": {"enabled": cni, "networks": CNI_NETWORKS, "programs": CNI_PLUGINS},
        "injection": {"config": {"identity": identity, "sidecar": {"resources": {}}}},
        "settings": {"drain_seconds": 0.2, **settings},
    }


class Release:
    """A release of the chart by Helm, and its objects in the cluster."""

    def __init__(self, helm: Helm, administrator: Kubectl, folder: Path) -> None:
        self._helm, self._administrator, self._folder = helm, administrator, folder
        self._kubectl = replace(administrator, namespace=HOME)

    def do(self, verb: str, *words: str, values: Document | None = None) -> str:
        """Run a Helm command for the release and wait until its Pods are ready or deleted."""
        given: list[str] = []
        if values is not None:
            (self._folder / "values.json").write_text(json.dumps(values))
            given = ["--values", str(self._folder / "values.json")]
        return self._helm(verb, "meshwright", *words, "-n", HOME, *given, "--wait", "--timeout", "240s")

    def image(self) -> str:
        """Return the image of the control plane's Pod."""
        return str(self._kubectl.get("pod", "meshwright-0")["spec"]["containers"][0]["image"])

    def version(self) -> str:
        """Return the version of the program in the control plane's Pod."""
        return self._kubectl("exec", "meshwright-0", "--", "meshwright", "--version").strip()

    def webhooks(self) -> list[tuple[str, int]]:
        """Return the CA bundle and the generation of each webhook configuration, once it is set."""
        return [self._registered(item) for item in ("validating", "mutating")]

    def _registered(self, kind: str) -> tuple[str, int]:
        lines = (f"{kind}webhookconfiguration", "meshwright")
        result = self._administrator.until(lambda item: item.get("webhooks"), *lines)
        (bundle,) = {webhook["clientConfig"]["caBundle"] for webhook in result["webhooks"]}
        return bundle, result["metadata"]["generation"]


@pytest.fixture
def home(real_node: Node, node_administrator: Kubectl) -> Iterator[None]:
    """Prepare the control plane's namespace, which enforces `restricted`, and a volume for it."""
    program = Path(envoy.program() or "")
    for tag in (BEFORE, NOW):
        for image in (own_images.control_plane(tag), own_images.proxy(tag, program)):
            real_node.load(own_images.of_release(image, unpacked()) if tag == BEFORE else image)
    real_node.inside.run("mkdir", "-p", _VOLUME)
    # Helm refuses existing objects, such as the Lease of a server that was configured for this namespace.
    node_administrator("delete", "namespace", HOME, "--ignore-not-found")
    node_administrator.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": HOME, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        },
        _volume(),
    )
    node_administrator.until_there("serviceaccount", "default", "-n", HOME)
    yield
    node_administrator("delete", "namespace", HOME, "--ignore-not-found")
    node_administrator("delete", "persistentvolume", "meshwright-test", "--ignore-not-found")


def _volume() -> Document:
    """Return a volume of the node, which has no provisioner."""
    at = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "meshwright-test"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": _VOLUME},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [at]}]}},
        },
    }


class Shop:
    """A shop and its buyer in a namespace with the injection label, from manifests without a mesh."""

    def __init__(self, kubectl: Kubectl, tag: str = BEFORE) -> None:
        self._kubectl = kubectl
        kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
        kubectl.apply(
            *map(account, ("buyer", "shop")),
            service("shop"),
            routes("all"),
            target("buyers", kubectl.namespace, "buyer", "shop", "all"),
        )
        self._begin(tag, "shop", "buyer")

    def _begin(self, tag: str, *names: str, **container: object) -> None:
        for name in names:
            # A namespace ends no sooner than half of the grace period of its Pods allows.
            made = pod(
                name,
                application(name, **container),
                serviceAccountName=name,
                terminationGracePeriodSeconds=1,
            )
            self._kubectl.apply(made)
        for name in names:
            self._kubectl.until_pod(name)
            result = self._kubectl.get("pod", name)["spec"]["initContainers"]
            assert {item["image"] for item in result} == {f"meshwright/proxy:{tag}"}

    def buyer_without_rights(self) -> None:
        """Recreate the buyer's Pod without privileges, so that the node sets its rules.

        It gets its certificate in a Secret that it owns.
        """
        self._kubectl("delete", "pod", "buyer", "--grace-period=1")
        self._kubectl("label", "namespace", self._kubectl.namespace, ENFORCE)
        self._begin(NOW, "buyer", securityContext=NO_RIGHT)
        made = self._kubectl.get("pod", "buyer")
        name = f"meshwright-proxy-{made['metadata']['labels']['meshwright.dev/proxy-uuid']}"
        assert name in [volume.get("secret", {}).get("secretName") for volume in made["spec"]["volumes"]]
        owned = self._kubectl.until(lambda item: item["metadata"].get("ownerReferences"), "secret", name)
        assert [owner_reference["uid"] for owner_reference in owned["metadata"]["ownerReferences"]] == [
            made["metadata"]["uid"]
        ]

    def connectivity(self, administrator: Kubectl) -> tuple[str, list[str]]:
        """Run `meshwright connectivity` in a debug container, as in the docs.

        Return the headline without the names, and the verdicts of the steps.
        """
        home, named = ("-n", HOME, "exec", "meshwright-0", "--"), self._kubectl.namespace
        asked = ("meshwright", "connectivity", "--from", f"{named}/buyer", "--to", f"{named}/shop")
        facts = administrator(*home, *asked, "--no-request", "--json")
        image = str(administrator.get("pod", "meshwright-0", "-n", HOME)["spec"]["containers"][0]["image"])
        flags = ("debug", "--attach", "-q", "buyer", "--profile=restricted", f"--image={image}")
        text = self._kubectl(*flags, "--", "meshwright", "connectivity", "--json", "--facts", facts)
        result = json.loads(text[text.index("{") :])
        return result["headline"].rpartition(": ")[2], [step["verdict"] for step in result["steps"]]

    def answers(self) -> None:
        """Call as the buyer until the shop answers; its sidecar must first get the configuration."""
        code = (
            "import urllib.request as r; print(r.urlopen('http://shop/', timeout=5).headers['x-served-by'])"
        )

        def answered() -> bool:
            answer = self._kubectl.run("exec", "buyer", "-c", "app", "--", PYTHON, "-c", code)
            return answer.out.strip() == "shop"

        wait_until(answered, 3 * SECONDS)


def test_chart_is_installed_upgraded_rolled_back_and_removed_without_leftovers(
    home: None, real_node: Node, node_administrator: Kubectl, typed: Typed, tmp_path: Path
) -> None:
    """Pods can call each other at every step, and Helm leaves the webhooks' configurations unchanged.

    The control plane keeps its CA, and the shop keeps its sidecar of the release before. At the end no object
    is left.
    """
    administrator, commands = node_administrator, Networked(typed, real_node.inside.network_file)
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    before = _everything(administrator)
    helm = Helm(tmp_path, administrator.kubeconfig, administrator.enter)
    release = Release(helm, administrator, tmp_path)
    switched = [f"--set={switch}.enabled=true" for switch in _SWITCHES]
    printed = helm("template", "meshwright", str(CHART), "-n", HOME, *switched)
    administrator("apply", "--dry-run=server", "-f", "-", given=printed)

    before_chart = unpacked() / "deploy" / "chart" / "meshwright"
    assert "meshwright check" in release.do("install", str(before_chart), values=values(BEFORE))
    assert release.image() == f"meshwright/control-plane:{BEFORE}"
    assert release.version() == version_before()
    webhooks = release.webhooks()
    _judges(administrator)
    with namespaced(administrator) as kubectl:
        shop = Shop(kubectl)
        shop.answers()
        assert shop.connectivity(administrator) == ("allowed by policy, and the mesh agrees", ["ok"] * 6)
        _is_well(administrator, commands, tmp_path)

        release.do(
            "upgrade",
            str(CHART),
            values={**values(NOW, "secret", cni=True, log_level="debug"), "store": "directory"},
        )
        assert release.image() == f"meshwright/control-plane:{NOW}"
        assert release.version() == installed_version("meshwright")
        assert _left(release.webhooks(), webhooks, releases=1)
        _judges(administrator)
        shop.answers()
        shop.buyer_without_rights()
        shop.answers()

        release.do("rollback", "1")
        assert release.image() == f"meshwright/control-plane:{BEFORE}"
        assert release.version() == version_before()
        assert _left(release.webhooks(), webhooks, releases=2)
        shop.answers()
        _is_missed(administrator, commands, {f"{kubectl.namespace}/{each}" for each in ("buyer", "shop")})

    release.do("uninstall")
    assert administrator.get("crd", "-l", "app.kubernetes.io/name=meshwright")["items"], "with policy in them"
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    _until_nothing_is_left(before, administrator)


def _left(now: list[tuple[str, int]], before: list[tuple[str, int]], *, releases: int) -> bool:
    """Return whether the CA is the same, and Helm has left both configurations as they were.

    A server of another release judges other kinds, so each may write the validating configuration once.
    """
    ((ca, generation), injecting), ((ca_before, first), injecting_before) = now, before
    return (ca, injecting) == (ca_before, injecting_before) and first <= generation <= first + releases


def _is_well(administrator: Kubectl, commands: Commands, folder: Path) -> None:
    """Assert that `check` has no failure and that both sidecars are connected with valid certificates."""
    # The values of the release before cannot name its store, and the default of this clone is another one.
    given = folder / "check.json"
    given.write_text(json.dumps({**json.loads((folder / "values.json").read_text()), "store": "directory"}))
    home = ("--control-plane-namespace", HOME, "--kubeconfig", str(administrator.kubeconfig))
    words = ("check", "--kubernetes", "--json", *home, "--values", str(given))
    answer: dict[str, Any] = {}

    def is_known() -> bool:  # certificates of proxies are known once these have reported them
        done = commands.run(Command(folder, words, {}), SECONDS)
        answer.update({check["name"]: check for check in json.loads(done.stdout)["checks"]})
        failed = [check for check in answer.values() if check["status"] == "failed"]
        assert not failed, json.dumps(failed)
        assert done.returncode == 0
        return bool(answer["certificates"]["said"] != "no proxy holds one")

    wait_until(is_known, SECONDS, lambda: answer)
    wanted = {"readiness", "proxies", "certificates", "policy webhook asked", "injection webhook asked"}
    wanted |= {"proxies of Pods"}
    assert {answer[item]["status"] for item in wanted} == {"ok"}, answer
    assert answer["proxies"]["said"] == "2 connected, 0 expected, 0 disconnected"
    assert "the first of proxy ends in " in answer["certificates"]["said"]


def _is_missed(administrator: Kubectl, commands: Commands, pods: set[str]) -> None:
    """Assert that each Pod is reported while its control plane is missing."""
    administrator("-n", HOME, "scale", "statefulset", "meshwright", "--replicas=0")
    answer: dict[str, Any] = {}

    def are_named() -> bool:
        answer.update(_checked(administrator, commands)["proxies of Pods"])
        return answer["status"] == "failed" and all(item in answer["said"] for item in pods)

    wait_until(are_named, SECONDS, lambda: answer)
    assert answer["said"].startswith(f"{len(pods)} of {len(pods)} not connected to the control plane: ")


def _checked(administrator: Kubectl, commands: Commands) -> dict[str, Any]:
    words = ("check", "--kubernetes", "--json", "--control-plane-namespace", HOME)
    command = Command(Path("/"), (*words, "--kubeconfig", str(administrator.kubeconfig)), {})
    done = commands.run(command, SECONDS)
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def _judges(administrator: Kubectl) -> None:
    """Wait until the webhook refuses an invalid policy."""
    wrong = {
        "apiVersion": "specs.smi-spec.io/v1alpha4",
        "kind": "HTTPRouteGroup",
        "metadata": {"name": "wrong", "namespace": "default"},
        "spec": {"matches": [{"name": "all", "pathRegex": "(", "methods": ["*"]}]},
    }
    wait_until(lambda: "MW1014" in administrator.dry_run(wrong).message, 3 * SECONDS)


def _everything(administrator: Kubectl) -> set[tuple[str, str, str]]:
    """Return all objects of the cluster by kind, namespace and name."""
    kinds = administrator("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(kind for kind in kinds if kind not in _WRITTEN_BY_OTHERS)
    result = json.loads(administrator("get", wanted, "-A", "-o", "json"))["items"]
    return {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in result
    }


def _until_nothing_is_left(before: set[tuple[str, str, str]], administrator: Kubectl) -> None:
    left: set[tuple[str, str, str]] = set()

    def is_gone() -> bool:
        left.clear()
        left.update(_everything(administrator) - before)
        return not left

    wait_until(is_gone, 3 * SECONDS, lambda: left)
    assert administrator("get", "leases", "-n", HOME, "-o", "name") == ""
