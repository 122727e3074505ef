"""Tests of the ConfigMap of the mesh's roots in namespaces with sidecars, on a real API server."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kubernetes.injection.credentials.pod_roots import Reach, at_home
from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots
from meshwright.mesh.kinds import NAMESPACE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects
from tests.kubernetes.conftest import namespaced
from tests.kubernetes.tools import faulty_proxy as spoiling
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools import libyaml
from tests.tools.deadline import until, wait_until
from tests.tools.forked_cli import ROOT
from tests.tools.program import Program, Server
from tools.real_parts.cluster import RunningCluster

SECONDS: Final = 60.0
NAME: Final = "meshwright-roots"
INJECT: Final = "meshwright.dev/inject"
MINE: Final = "test.meshwright.dev/pod-roots"
HOME: Final = "meshwright-system"


def _until(holds: Callable[[], object], said: Callable[[], object]) -> None:
    wait_until(holds, SECONDS, said)


class Kept:
    """A server that maintains the ConfigMap in the namespaces of a test, and kubectl for each of them."""

    def __init__(self, program: Program, kubeconfig: Path, spaces: list[Kubectl]) -> None:
        self.program, self.spaces = program, spaces
        for space in spaces:
            space("label", "namespace", space.namespace, f"{MINE}=yes")
        program.reads = ("--kubernetes", "--kubeconfig", str(kubeconfig), f"--namespace-selector={MINE}=yes")
        messages = ("enrolment_address=127.0.0.1:0", "enrolment_proofs=kubernetes")
        self.server: Server = program.serve(*(f"--set={item}" for item in messages))

    @property
    def signer(self) -> str:
        """Return the signing root."""
        return (self.program.state / "ca" / "ca.pem").read_text()

    def roots(self, of: Kubectl) -> str:
        """Return the roots in a namespace, or an empty string."""
        result = of.found("configmap", NAME)
        return str(result["data"]["ca.pem"]) if result else ""

    def until(self, of: Kubectl, *roots: str) -> None:
        """Wait until a namespace has exactly these roots."""

        def has() -> bool:
            there = self.roots(of)
            return len(there) == sum(map(len, roots)) and all(root in there for root in roots)

        _until(has, lambda: (self.roots(of), self.remarks(), self.server.log()[-10:]))

    def remarks(self) -> str:
        """Return the warnings of the server's readiness."""
        return self.server.get("/healthz/ready")[1]

    def change(self, *flags: str) -> dict[str, Any]:
        """Start a root rotation, or return its status."""
        words = ("certs", "rotate-root", "--state", str(self.program.state), "--json", *flags)
        return dict(json.loads(self.program.run(*words)[1]))


@pytest.fixture
def kept(
    administrator: Kubectl, shared_cluster: RunningCluster, program: Program, definitions: str
) -> Iterator[Kept]:
    """Return a server and three namespaces without labels."""
    del definitions
    with contextlib.ExitStack() as stack:
        spaces = [stack.enter_context(namespaced(administrator)) for _ in range(3)]
        made = Kept(program, shared_cluster.kubeconfig, spaces)
        yield made
        made.server.stop()


def test_namespaces_with_sidecars_get_the_roots_and_a_rotation_waits_for_them(kept: Kept) -> None:
    """A label or the first Pod creates the ConfigMap, which is repaired.

    A foreign ConfigMap is reported and kept. A rotation waits while an immutable ConfigMap cannot be updated.
    """
    labelled, by_pod, by_hand = kept.spaces
    by_hand("create", "configmap", NAME, "--from-literal=ca.pem=mine")
    for kubectl in (labelled, by_hand):
        kubectl("label", "namespace", kubectl.namespace, f"{INJECT}=true")
    by_pod.apply(objects.pod("one", uuid="metadata.uid"))
    old = kept.signer
    kept.until(labelled, old)
    kept.until(by_pod, old)
    foreign = (
        f"has other roots than the mesh and belongs to someone else in: {by_hand.namespace}; run `kubectl"
    )
    _until(lambda: foreign in kept.remarks(), kept.remarks)

    labelled("delete", "configmap", NAME)
    kept.until(labelled, old)
    by_pod("patch", "configmap", NAME, "-p", '{"data": {"ca.pem": "spoilt"}}')
    kept.until(by_pod, old)

    by_pod("patch", "configmap", NAME, "-p", '{"immutable": true}')
    kept.change()
    kept.until(labelled, old, (kept.program.state / "ca.other" / "ca.pem").read_text())
    _until(lambda: "immutable" in str(kept.change("--status")), lambda: kept.change("--status"))
    status = kept.change("--status")
    (held,) = status["also_waiting_for"]
    assert (held["part"], held["why"], status["stage"]) == ("pods", "joining-trust", "trusting")
    by_pod("delete", "configmap", NAME)
    _until(lambda: kept.change("--status")["stage"] is None, lambda: kept.change("--status"))
    assert kept.signer != old
    kept.until(labelled, kept.signer)
    kept.until(by_pod, kept.signer)
    assert kept.roots(by_hand) == "mine"


def _rules() -> list[dict[str, list[str]]]:
    """Return the rules of our role; the last one is for ConfigMaps."""
    documents = libyaml.load_all((ROOT / "docs" / "kubernetes" / "joining.yaml").read_text("utf-8"))
    (rules,) = (document["rules"] for document in documents if document["kind"] == "ClusterRole")
    return list(rules)


@contextlib.asynccontextmanager
async def _keeping(kubeconfig: Path, namespace: str) -> AsyncIterator[PodRoots]:
    """Maintain the ConfigMap in one namespace, as an account."""
    key = ObjectKey(NAMESPACE, Namespace(""), namespace)
    namespace_object = NamespaceObject(Namespace(namespace), ((INJECT, "true"),))
    merged = MergedObjects(
        (("test", Picture({key: SourcedObject(key, namespace_object, InFile("a.yaml"))})),)
    )
    async with Api(find_connection(kubeconfig, "")) as api:
        roots, reach = (lambda: b"roots"), Reach(at_home(HOME))
        made = PodRoots(api, NAME, HOME, reach, roots, lambda: merged, partial(datetime.now, UTC))
        tasks = [asyncio.create_task(work) for _, work in made.works()]
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _made(kubectl: Kubectl) -> None:
    """Wait until the ConfigMap exists."""
    await asyncio.to_thread(kubectl.until_there, "configmap", NAME)


@pytest.mark.parametrize("left_out", ["create", "patch", "watch"])
async def test_roots_role_has_no_verb_too_many(accounts: Accounts, kubectl: Kubectl, left_out: str) -> None:
    """Without any one of the verbs, the missing grant is reported. Only this ConfigMap's name is granted."""
    rule = _rules()[-1]
    assert (rule["resourceNames"], left_out in rule["verbs"]) == ([NAME], True)
    verbs = [verb for verb in rule["verbs"] if verb != left_out]
    account = accounts.make("joining", [{**rule, "verbs": verbs}])
    async with _keeping(account.kubeconfig, kubectl.namespace) as kept:
        await until(lambda: "RBAC grants no `" in kept.error, SECONDS, lambda: kept.error)
        assert (kept.trusted, len(kept.remarks())) == (b"", 1)


async def test_roots_role_suffices_without_streaming_lists(
    accounts: Accounts, kubectl: Kubectl, shared_cluster: RunningCluster, tmp_path: Path
) -> None:
    """Older API servers, and those with the feature off, need `list` as well."""
    account = accounts.make("joining", _rules())
    async with spoiling.spoiling(shared_cluster) as between:
        between.spoil = spoiling.without_streaming_lists
        other = spoiling.by_way_of(account.kubeconfig, between.server, tmp_path / "by-way-of")
        async with _keeping(other, kubectl.namespace) as kept:
            await _made(kubectl)
            await asyncio.to_thread(kubectl, "delete", "configmap", NAME)
            await _made(kubectl)
            assert kept.error == ""


async def test_terminating_namespace_is_not_waited_for(
    shared_cluster: RunningCluster, administrator: Kubectl, kubectl: Kubectl
) -> None:
    """No object can be created in it, so its missing ConfigMap is no error."""
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["a.b/c"]}}
    kubectl.apply(held)
    administrator("delete", "namespace", kubectl.namespace, "--wait=false")
    try:
        async with _keeping(shared_cluster.kubeconfig, kubectl.namespace) as kept:
            await until(lambda: kept.trusted is None, SECONDS, lambda: kept.error)
            assert kept.remarks() == ()
    finally:
        made = replace(kubectl, namespace=kubectl.namespace)
        made("patch", "configmap", "held", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
