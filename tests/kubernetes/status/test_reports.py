"""Tests of reports to the owners of objects: Events in `kubectl describe`, and the status."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

import meshwright.kubernetes.status.conditions.writer
import meshwright.kubernetes.status.events.patience
import meshwright.kubernetes.status.events.writer
from meshwright.controller.app import run
from meshwright.controller.server import BoundAddresses
from meshwright.controller.settings.settings import load
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol
from tests.e2e.envoys import running
from tests.feature.identity.conftest import Server
from tests.kubernetes.commands.test_check import found
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Document, Kubectl
from tests.tools.deadline import until, wait_until
from tests.tools.envoy import program
from tests.tools.forked_cli import Typed
from tests.tools.program import SECONDS, Program
from tests.tools.program import Server as Running
from tools.real_parts.cluster import RunningCluster

WRITTEN: Final = 'meshwright_kubernetes_reports_total{what="status"}'
FORBIDDEN: Final = 'meshwright_kubernetes_report_failures_total{reason="forbidden",what="event"}'
WRONG: Final = Counter(MW2001=1, MW2004=1)
"""What is wrong with a target whose only rule names what is not there."""

REPORTING: Final = "meshwright_kubernetes_reporting"
GUILTY: Final = "/big[0-9a-f]{120}"
"""248 instructions: an Envoy that was not told otherwise takes 100."""


@dataclass(frozen=True)
class Reports:
    """Servers for the test's namespace, which also has their Lease, and the owner's kubectl."""

    kubectl: Kubectl
    kubeconfig: Path
    state: Path

    @asynccontextmanager
    async def serving(self, kubeconfig: Path | None = None, state: str = "state") -> AsyncIterator[Server]:
        """Run a server until the context ends."""
        stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
        flags: dict[str, object] = dict.fromkeys(
            ("ads_address", "http_address", "debug_address"), "127.0.0.1:0"
        )
        flags |= {"kubernetes": True, "kubeconfig": str(kubeconfig or self.kubeconfig), "drain_seconds": 0.2}
        settings = load(flags | {"namespaces": self.kubectl.namespace, "state": self.state / state})
        task = asyncio.create_task(run(settings, stop, started=started.set_result))
        try:
            await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
            bound: BoundAddresses = started.result() if started.done() else await asyncio.shield(started)
            yield Server(self.state, self.state / state, bound)
        finally:
            stop.set()
            await task

    async def get(self, *words: str) -> Document:
        """Return an object or a list."""
        return await asyncio.to_thread(self.kubectl.get, *words)

    async def until(self, holds: Callable[[Document], object], *words: str) -> Document:
        """Get objects until they meet the condition; return them."""
        return await asyncio.to_thread(self.kubectl.until, holds, *words)

    async def apply(self, *documents: Document) -> None:
        """Apply objects."""
        await asyncio.to_thread(self.kubectl.apply, *documents)

    async def describe(self, *words: str) -> str:
        """Return what `kubectl describe` prints."""
        return await asyncio.to_thread(self.kubectl, "describe", *words)

    async def events(self, holds: Callable[[Counter[str]], object]) -> list[Document]:
        """Wait until our Events meet the condition, counted by their reason; return them."""
        words = ("events.events.k8s.io", "--selector=meshwright.dev/home")
        return list((await self.until(lambda answer: holds(_reasons(answer)), *words))["items"])


def _reasons(said: Document) -> Counter[str]:
    return Counter(item["reason"] for item in said["items"])


def conditions(said: Document) -> dict[str, tuple[str, str, str]]:
    """Return an object's conditions by type: status, reason and message."""
    listed = said.get("status", {}).get("conditions", [])
    return {item["type"]: (item["status"], item["reason"], item["message"]) for item in listed}


def all_well(said: Document) -> bool:
    """Return whether an object is accepted and programmed in its current generation."""
    listed = {condition["type"]: condition for condition in said.get("status", {}).get("conditions", [])}
    wanted = ("True", said["metadata"]["generation"])
    result = [listed.get(item, {}) for item in ("Accepted", "Programmed")]
    return [(item.get("status"), item.get("observedGeneration")) for item in result] == [wanted] * 2


def is_applied(said: Document) -> bool:
    """Return whether an object's last change affects proxies and all of them have applied it."""
    return conditions(said).get("Programmed", ("", "", ""))[1] == "Applied"


@pytest.fixture
def reports(
    shared_cluster: RunningCluster,
    kubectl: Kubectl,
    definitions: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Reports:
    """Return a factory of servers, with no delay before objects count as not rejected, or as missing."""
    del definitions
    monkeypatch.setenv("POD_NAMESPACE", kubectl.namespace)
    for module in (
        meshwright.kubernetes.status.events.writer,
        meshwright.kubernetes.status.conditions.writer,
    ):
        monkeypatch.setattr(module, "SETTLED", 0.0)
    monkeypatch.setattr(meshwright.kubernetes.status.events.patience, "HELD_SECONDS", 0.1)
    return Reports(kubectl, shared_cluster.kubeconfig, tmp_path)


def shop(reports: Reports, routes: str = "all") -> tuple[Document, ...]:
    """Return a shop that a buyer may call with the rules of a route group."""
    return (
        *map(objects.account, ("buyer", "shop")),
        objects.service("shop"),
        objects.workload("shop-vm", "127.0.0.77", "shop", app="shop"),
        objects.workload("buyer-vm", "127.0.0.78", "buyer"),
        objects.routes("all"),
        objects.target("buyers", reports.kubectl.namespace, "buyer", "shop", routes),
    )


async def test_describe_shows_each_problem_once_and_its_resolution(reports: Reports) -> None:
    """A restarted server continues the same Events, and objects without problems have none."""
    await reports.apply(*shop(reports, "missing"))
    async with reports.serving():
        await reports.until(all_well, "workload", "shop-vm")
        events = await reports.events(lambda reasons: reasons == WRONG)
        assert {event["regarding"]["name"] for event in events} == {"buyers"}
        assert {event["reportingController"] for event in events} == {"meshwright.dev/control-plane"}
        text = (await reports.describe("traffictarget", "buyers")).partition("Events:")[2]
        assert "HTTPRouteGroup" in text
        assert "does not exist" in text
    async with reports.serving() as again:
        await reports.until(all_well, "workload", "shop-vm")
        same = await reports.events(lambda reasons: reasons == WRONG)
        assert _identities(same) == _identities(events)
        await reports.apply(*shop(reports))
        await reports.events(lambda reasons: reasons == WRONG + Counter(Mended=2))
        assert "MW2001 is resolved" in await reports.describe("traffictarget", "buyers")
        assert await again.metric(WRITTEN) == 0, "the conditions that there were still hold"
        await reports.apply(*shop(reports, "missing"))
        words = ("events.events.k8s.io", "--field-selector=reason=MW2001")
        result = await reports.until(lambda answer: "series" in answer["items"][0], *words)
        assert [item["series"]["count"] for item in result["items"]] == [2]


def _identities(events: list[Document]) -> set[tuple[str, str, bool]]:
    return {(event["reason"], event["metadata"]["uid"], "series" in event) for event in events}


@pytest.mark.envoy
async def test_describe_shows_the_rejection_of_a_policy_by_an_envoy(reports: Reports) -> None:
    """The Event has Envoy's message and the object at fault, although the policy itself is valid."""
    envoy = program() or ""
    name = f"shop-vm.shop.{reports.kubectl.namespace}"
    await reports.apply(*shop(reports), objects.workload("shop-vm", "127.0.0.77", "shop", app="closed"))
    async with reports.serving() as server:
        picky = partial(running, envoy, server, reports.state / "envoy", AdsProtocol.DELTA, name, picky=True)
        async with picky():

            async def is_connected() -> bool:
                return (await server.proxies()).get(name) == "connected"

            await until(is_connected)
            await reports.apply(objects.workload("shop-vm", "127.0.0.77", "shop", app="shop"))
            answer = await reports.until(is_applied, "workload", "shop-vm")
            assert conditions(answer)["Programmed"] == (
                "True",
                "Applied",
                f"applied by 1 of 1 proxies connected to {socket.gethostname()}",
            )
            await reports.apply(objects.routes("all", GUILTY))
            (event,) = await reports.events(lambda reasons: reasons["ResourceRejected"])
            assert event["regarding"]["kind"] == "HTTPRouteGroup"
            assert "RE2 program size of 248" in event["note"]
            shown = await reports.describe("httproutegroup", "all")
            assert "ResourceRejected" in shown
            assert f"Proxy {name} (and perhaps other proxies) rejected route" in " ".join(shown.split())


async def test_status_is_written_only_when_it_changes_and_foreign_fields_are_kept(reports: Reports) -> None:
    """Each status is written once, whatever others write in the same object.

    It is written again only if its content changes.
    """
    await reports.apply(*shop(reports))
    async with reports.serving() as server:
        first = await reports.until(all_well, "workload", "shop-vm")
        assert conditions(first)["Conflicted"][:2] == ("False", "NoConflict")
        theirs = {"type": "Patched", "status": "True", "reason": "ByOwner", "message": "last week"}
        status = {"conditions": [{**theirs, "lastTransitionTime": "2026-01-02T03:04:05Z"}]}
        head = {"apiVersion": "meshwright.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "shop-vm"}}
        words = ("apply", "--server-side", "--subresource=status", "--field-manager=owner", "-f", "-")
        await asyncio.to_thread(reports.kubectl, *words, given=json.dumps(head | {"status": status}))
        await reports.apply(objects.workload("shop-vm", "127.0.0.79", "shop", app="shop", tier="one"))
        second = await reports.until(all_well, "workload", "shop-vm")
        assert conditions(second)["Patched"] == ("True", "ByOwner", "last week")
        assert _since(second, "Accepted") == _since(first, "Accepted")
        result = await reports.get("workload", "shop-vm", "--show-managed-fields")
        listed = result["metadata"]["managedFields"]
        managers = {item["manager"] for item in listed if item.get("subresource")}
        assert managers == {"meshwright.dev/control-plane", "owner"}
        assert await server.metric(WRITTEN) == 3, "each of two, and one again"
        await reports.apply(objects.workload("shop-vm", "127.0.0.79", "shop", app="nobody"))
        await reports.apply(objects.workload("shop-vm", "127.0.0.80", "shop", app="nobody"))
        await reports.until(all_well, "workload", "shop-vm")
        assert await server.metric(WRITTEN) == 4, "labels alone make it say nothing else"


def _since(said: Document, kind: str) -> str:
    return str(
        next(
            condition["lastTransitionTime"]
            for condition in said["status"]["conditions"]
            if condition["type"] == kind
        )
    )


async def test_missing_grant_for_events_is_logged_once_and_conditions_are_written(
    reports: Reports, accounts: Accounts
) -> None:
    """Without the verb for Events, the conditions are still written."""
    await reports.apply(*shop(reports, "missing"))
    read = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}
    leases = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "update"],
    }
    status = {"apiGroups": ["meshwright.dev"], "resources": ["workloads/status"], "verbs": ["patch"]}
    account = await asyncio.to_thread(accounts.make, "mesh", (read, leases, status))
    with capture_logs() as logs:
        async with reports.serving(account.kubeconfig) as server:
            await reports.until(all_well, "workload", "shop-vm")
            await server.counted(FORBIDDEN, 1)
    answer = [log["error"] for log in logs if log["event"] == "status report not written"]
    assert len(answer) == 1
    assert "RBAC grants no `create` on `events.events.k8s.io`" in answer[0]


async def test_thousands_of_problems_are_limited_and_summarised_in_one_event(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Event of the namespace has the approximate number of further problems."""
    monkeypatch.setattr(meshwright.kubernetes.status.events.writer, "OPEN", 20)
    monkeypatch.setattr(meshwright.kubernetes.status.events.writer, "A_MINUTE", 6000.0)
    namespace = reports.kubectl.namespace
    wrong = [objects.target(f"t-{n}", namespace, "buyer", "shop", f"missing-{n}") for n in range(140)]
    await reports.apply(*shop(reports), *wrong)
    async with reports.serving():
        events = await reports.events(lambda reasons: reasons["MoreProblems"])
        (more,) = (event["note"] for event in events if event["reason"] == "MoreProblems")
        assert more.startswith("at least 200 more problems")
        assert len(events) <= 21


def test_another_server_continues_the_reports_after_the_leader_is_killed(
    reports: Reports, typed: Typed, tmp_path: Path
) -> None:
    """The two servers have separate states. No problem is reported twice, and new ones are reported."""
    kubectl, namespace = reports.kubectl, reports.kubectl.namespace
    kubectl.apply(*shop(reports), objects.routes("wrong", "("))
    programs = [Program(tmp_path / f"state-{n}", tmp_path / f"files-{n}", typed) for n in (1, 2)]
    words = ("events.events.k8s.io", "--selector=meshwright.dev/home")
    for item in programs:
        item.reads = ("--kubernetes", "--kubeconfig", str(reports.kubeconfig), "--namespaces", namespace)
        item.environment["POD_NAMESPACE"] = namespace
    try:
        servers = [item.serve() for item in programs]
        answer = kubectl.until(lambda answer: _reasons(answer) == Counter(MW1014=1), *words)["items"]
        leader = _until_one_reports(servers)
        leader.process.kill()
        (other,) = (server for server in servers if server is not leader)
        other.until(lambda: other.metric(REPORTING) == 1)
        kubectl.apply(objects.routes("other", "("))
        result = kubectl.until(lambda response: _reasons(response)["MW1014"] == 2, *words)["items"]
        assert _identities(answer) == _identities(
            [item for item in result if item["regarding"]["name"] == "wrong"]
        )
    finally:
        for item in programs:
            item.end()


def _until_one_reports(servers: list[Running]) -> Running:
    """Wait until one server reports, and return it.

    A leader that cannot renew its Lease in time on a slow machine is succeeded, so either may be the one.
    """
    reporting: list[Running] = []

    def is_one() -> bool:
        reporting[:] = [server for server in servers if server.metric(REPORTING) == 1]
        return len(reporting) == 1

    wait_until(is_one, SECONDS, lambda: reporting)
    return reporting[0]


async def test_osm_kinds_have_their_own_status_words(reports: Reports) -> None:
    """An IngressBackend is `committed` or in `error`, and a root is `active` or has its reason."""
    root = partial(objects.root, namespace=reports.kubectl.namespace)

    def says(**words: str) -> Callable[[Document], object]:
        return lambda response: words.items() <= response.get("status", {}).items()

    await reports.apply(*shop(reports), objects.ingress("shop"), root("first", trustDomain="cluster.local"))
    async with reports.serving():
        fine = says(currentStatus="committed", reason="the whole object is in force")
        await reports.until(fine, "ingressbackend", "shop")
        await reports.until(says(state="active"), "meshrootcertificate", "first")
        await reports.apply(root("second", role="passive", trustDomain="example.org"))
        await reports.until(says(state="error"), "mrc", "second")
        await reports.apply(root("second", role="passive"))
        await reports.until(says(state="validatingRollout"), "mrc", "second")
        assert (await reports.get("mrc", "first"))["status"] == {"state": "active"}
        await reports.apply(objects.ingress("younger"))
        answer = await reports.until(says(currentStatus="error"), "ingressbackend", "younger")
        assert answer["status"]["reason"].startswith("MW2065: ")
        await asyncio.to_thread(reports.kubectl, "delete", "ingressbackend", "shop")
        await reports.until(fine, "ingressbackend", "younger")


async def test_mesh_config_reports_a_gateway_certificate_that_is_not_written(
    reports: Reports, program: Program, shared_cluster: RunningCluster
) -> None:
    """An Event and `check` report a foreign Secret. When it is deleted, the certificate is written."""
    here = reports.kubectl.namespace
    gateway = {"subjectAltNames": ["gateway.example.org"], "secret": {"name": "tls", "namespace": here}}
    config = {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "MeshConfig",
        "metadata": {"name": "osm-mesh-config"},
        "spec": {"certificate": {"ingressGateway": gateway}},
    }
    await asyncio.to_thread(reports.kubectl, "create", "secret", "generic", "tls", "--from-literal=a=b")
    await reports.apply(config)
    async with reports.serving():
        (fields,) = await reports.events(lambda answer: answer["GatewayCertificateNotWritten"] == 1)
        assert fields["regarding"]["kind"] == "MeshConfig"
        assert (
            f"Secret {here}/tls was not created by this control plane, so it is not overwritten"
            in fields["note"]
        )
        line = (await asyncio.to_thread(found, program, shared_cluster, here))["reported problems"]
        text = f"MeshConfig {here}/osm-mesh-config: {fields['note']} (GatewayCertificateNotWritten)"
        assert (line["status"], line["said"]) == ("failed", text)
        await asyncio.to_thread(reports.kubectl, "delete", "secret", "tls")
        await reports.until(lambda answer: answer["type"] == "kubernetes.io/tls", "secret", "tls")
