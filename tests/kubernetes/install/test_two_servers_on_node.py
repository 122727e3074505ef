"""Test of the chart on a real node: from one control plane to two, and back, while Pods call each other."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubernetes.conftest import namespaced
from tests.kubernetes.install.test_chart_on_node import BEFORE, HOME, NOW, Release, Shop, home, values
from tests.kubernetes.tools.helm import CHART, Helm
from tests.kubernetes.tools.kubectl import SECONDS, Kubectl, has_condition
from tests.kubernetes.tools.objects import Document
from tests.kubernetes.tools.request_load import RequestLoad
from tests.tools import libyaml
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import ROOT, Command, Commands, Networked, Typed
from tools.real_parts.node import Node
from tools.release_before import unpacked

__all__ = ["home"]

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("helm_part"),
]

DEPLOYMENT: Final = "deployment/meshwright"
CLAIM: Final = ("persistentvolumeclaim", "state-meshwright-0")
CUSTODY: Final = ("secret", "meshwright-custody")
_CHECK: Final = ("meshwright", "check", "--json")
QUICK: Final = {"shutdown_delay_seconds": 1, "shutdown_spread_seconds": 1}
"""Settings with which a test does not wait half a minute for the end of a server."""


class Mesh:
    """The mesh of a release, as an administrator sees it."""

    def __init__(self, home: Kubectl) -> None:
        self._home = home

    def command(self, *words: str) -> str:
        """Return the output of a command in any of the servers."""
        return self._home("exec", "svc/meshwright", "--", "meshwright", *words)

    def certificates(self) -> tuple[set[str], set[str]]:
        """Return the serials of the services' certificates in use at a server, and of all proxies'."""
        services, _, proxies = self.command("certs", "list").partition("PROXY")
        # A serial has no leading zeros, so some have fewer than 32 digits.
        serials = re.compile(r"\b[0-9a-f]{24,32}\b")
        return set(serials.findall(services)), set(serials.findall(proxies))

    def until_servers_know_each_other(self) -> None:
        """Wait until a server has an answer of the other one, at the port for servers."""
        answer: dict[str, str] = {}

        def is_answered() -> bool:
            checks = json.loads(self._home.run("exec", "svc/meshwright", "--", *_CHECK).out)["checks"]
            answer.update(next(check for check in checks if check["name"] == "replicas"))
            return answer["said"].startswith("2 servers of version ")

        wait_until(is_answered, SECONDS, lambda: answer)

    def roots(self, namespace: str) -> dict[str, str]:
        """Return the roots with which the Pods of a namespace verify the control plane."""
        found = replace(self._home, namespace=namespace).get("configmap", "meshwright-roots")
        return dict(found["data"])

    def servers(self) -> list[Document]:
        """Return the Pods of the servers."""
        found = self._home.get("pods", "-l", "app.kubernetes.io/component=control-plane")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


@pytest.fixture
def release(home: None, node_administrator: Kubectl, tmp_path: Path) -> Iterator[Release]:
    """Return a release that is not installed yet; nothing of it is left afterwards."""
    administrator = node_administrator
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    made = Release(Helm(tmp_path, administrator.kubeconfig, administrator.enter), administrator, tmp_path)
    yield made
    made.do("uninstall")
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")


def _chosen(tag: str, **chosen: Any) -> Document:
    """Return values for images with a tag, and a claim that stays when its StatefulSet is deleted."""
    made = values(tag)
    if tag == NOW:
        made["settings"] |= QUICK
    return {**made, "persistence": {"keep": True}, **chosen}


def test_installation_of_one_server_becomes_one_of_two_and_returns(
    release: Release, real_node: Node, node_administrator: Kubectl, typed: Typed, tmp_path: Path
) -> None:
    """No request fails, and CA and certificates stay the same, at an upgrade, a restart and the way back.

    The values of the upgrade name no store, as before.
    """
    at_home = replace(node_administrator, namespace=HOME)
    mesh, commands = Mesh(at_home), Networked(typed, real_node.inside.network_file)
    before = unpacked() / "deploy" / "chart" / "meshwright"
    release.do("install", str(before), values=_chosen(BEFORE))
    with namespaced(node_administrator) as kubectl:
        Shop(kubectl).answers()
        load = RequestLoad(kubectl, "buyer", "http://shop/")
        load.start()
        roots, (services, proxies) = mesh.roots(kubectl.namespace), mesh.certificates()
        assert (len(services), len(proxies)) == (2, 2)

        def is_the_same() -> None:
            load.until_more()
            assert mesh.roots(kubectl.namespace) == roots
            of_server, of_ledger = mesh.certificates()
            assert of_server <= services, "a server of several has those of its own proxies"
            assert of_ledger == proxies

        release.do("upgrade", str(CHART), values=_chosen(NOW))
        assert len(mesh.servers()) == 2
        (job,) = at_home.get("jobs")["items"]
        assert has_condition(job, "Complete")
        assert at_home.get(*CLAIM)["status"]["phase"] == "Bound"
        is_the_same()
        _is_well(node_administrator, commands, tmp_path)
        mesh.until_servers_know_each_other()

        former = {pod["metadata"]["uid"] for pod in mesh.servers()}
        at_home("rollout", "restart", DEPLOYMENT)
        at_home("rollout", "status", DEPLOYMENT, "--timeout=80s")
        assert not former & {pod["metadata"]["uid"] for pod in mesh.servers()}
        is_the_same()

        _go_back(at_home)
        release.do("upgrade", str(CHART), values=_chosen(NOW, store="directory"))
        assert [pod["metadata"]["name"] for pod in mesh.servers()] == ["meshwright-0"]
        is_the_same()
        assert load.stop() > 0


def _is_well(administrator: Kubectl, commands: Commands, folder: Path) -> None:
    """Assert that `check` knows both servers, and that these have all permissions of the chart."""
    place = ("--control-plane-namespace", HOME, "--kubeconfig", str(administrator.kubeconfig))
    words = ("check", "--kubernetes", "--json", *place, "--values", str(folder / "values.json"))
    done = commands.run(Command(folder, words, {}), SECONDS)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["control plane"]["status"] == "ok", checks
    assert checks["control plane"]["said"].startswith("2 Pods ready, with image ")
    assert checks["its permissions"]["status"] == "ok", checks


def _go_back(at_home: Kubectl) -> None:
    """Take the documented steps from the store to a state directory, up to the upgrade."""
    at_home("scale", DEPLOYMENT, "--replicas=0")
    at_home("wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=control-plane", "--timeout=80s")
    at_home(
        "create", "secret", "generic", "meshwright-way-back", "--from-literal=passphrase=only-for-this-way"
    )
    job = libyaml.load((ROOT / "docs" / "kubernetes" / "way-back.yaml").read_text("utf-8"))
    pod = job["spec"]["template"]["spec"]
    for container in (*pod["initContainers"], *pod["containers"]):
        container |= {"image": f"meshwright/control-plane:{NOW}", "imagePullPolicy": "Never"}
    at_home.apply(job)
    done = at_home.until(
        lambda item: has_condition(item, "Complete") or has_condition(item, "Failed"),
        "job",
        "meshwright-way-back",
    )
    log = at_home.run("logs", "job/meshwright-way-back", "--all-containers")
    assert has_condition(done, "Complete"), log
