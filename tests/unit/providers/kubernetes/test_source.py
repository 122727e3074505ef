"""Tests of the Kubernetes source against a server that forbids, forgets, fails, stops and restarts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from meshwright.kube.reflector.pacing import Pacing
from meshwright.kube.turns import Turn
from meshwright.mesh.kinds import ENDPOINT_SLICE, NAMESPACE, POD, SERVICE, SERVICE_ACCOUNT, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.contract import SourceError
from meshwright.providers.kubernetes import source
from meshwright.providers.kubernetes.last_state import SavedState
from meshwright.providers.kubernetes.resources import CORE
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.kubernetes.source import KubernetesSource
from tests.unit.providers.kubernetes import objects
from tests.unit.providers.kubernetes.cluster import TARGETS, WORKLOADS, Cluster, crd

SOON = timedelta(milliseconds=50)
HOLD = timedelta(seconds=30)
PACING = Pacing(first=0.02, longest=0.05, steady=0.1, short=0.0)
TARGET = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "t")


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Run a cluster with one object of each kind."""
    result = Cluster(TARGETS, WORKLOADS)
    for name in ("shop", "books"):
        result.put(CORE[NAMESPACE], objects.namespace(name, team=name))
        result.put(CORE[SERVICE], objects.service("shop", name))
        result.put(CORE[SERVICE_ACCOUNT], objects.account("shop", name))
    result.put(CORE[POD], objects.pod("shop-1"))
    result.put(CORE[ENDPOINT_SLICE], objects.endpoint_slice("shop", "10.0.0.1"))
    result.put(TARGETS, objects.target("t"))
    result.put(WORKLOADS, objects.workload("vm"))
    await result.start()
    yield result
    await result.stop()


EVERYTHING = [
    "EndpointSlice shop/shop-abc",
    "Namespace books",
    "Namespace shop",
    "Pod shop/shop-1",
    "Service books/shop",
    "Service shop/shop",
    "ServiceAccount books/shop",
    "ServiceAccount shop/shop",
    "TrafficTarget shop/t",
    "Workload shop/vm",
]


class Running:
    """A running source, and the number of its reported changes."""

    def __init__(self, source: KubernetesSource) -> None:
        self.source = source
        self.told = 0
        self._other = asyncio.Event()

    def changed(self) -> None:
        """Record a change."""
        self.told += 1
        self._other.set()

    @property
    def names(self) -> list[str]:
        """The keys of the objects in force."""
        return [str(key) for key in self.source.objects()]

    @property
    def codes(self) -> list[str]:
        """The codes of the problems."""
        return [problem.code for problem in self.source.problems()]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds."""
        async with asyncio.timeout(10):
            while not condition():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._other.wait(), 0.05)
                self._other.clear()


@contextlib.asynccontextmanager
async def at_work(cluster: Cluster, scope: Scope | None = None, **more: Any) -> AsyncIterator[Running]:
    """Run a source that has read the cluster once."""
    async with cluster.api() as api:
        given = {"hold": HOLD, "discover": SOON, "pacing": PACING, **more}
        running = Running(KubernetesSource(api, scope or Scope.from_settings(), utc_now, **given))
        await running.source.first()
        task = asyncio.create_task(running.source.run(running.changed))
        await asyncio.sleep(0)  # let the task start
        try:
            yield running
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_source_starts_with_all_objects_of_the_cluster(cluster: Cluster) -> None:
    """Every kind is watched, there are no problems, and kinds that are not read are not requested."""
    async with at_work(cluster) as running:
        assert running.names == EVERYTHING
        assert running.codes == []
        fresh = running.source.freshness()
        assert (fresh.error, fresh.last_event, fresh.held) == ("", None, ())
        assert fresh.last_full_read is not None
        assert [watch.name for watch in fresh.watches] == [
            "endpointslices.discovery.k8s.io", "namespaces", "pods", "serviceaccounts", "services",
            "traffictargets.access.smi-spec.io", "workloads.meshwright.dev",
        ]  # fmt: skip
        counts = running.source.counts()
        assert (counts.good, counts.stale, counts.refused) == (len(EVERYTHING), 0, 0)
        assert "/apis/apps/v1/deployments" not in cluster.asked


async def test_changes_are_reported_and_heartbeats_are_not(cluster: Cluster) -> None:
    """Each change of a read field is reported once; a change of the Pod's status alone is not."""
    async with at_work(cluster) as running:
        before = running.source.objects()
        cluster.put(CORE[POD], objects.pod("shop-1", containerStatuses=[]))
        cluster.put(CORE[SERVICE], objects.service("shop", clusterIP="10.96.0.9"))
        await running.until(lambda: running.told > 0)
        assert [str(key) for key in running.source.objects().since(before)] == ["Service shop/shop"]
        cluster.delete(TARGETS, "t")
        await running.until(lambda: "TrafficTarget shop/t" not in running.names)
        assert running.told == 2
        assert running.codes == []  # a deletion by an event needs no hold
        assert running.source.freshness().last_event is not None


async def test_forbidden_kind_is_a_problem_and_the_rest_works(cluster: Cluster) -> None:
    """The start does not wait for the kind, and the problem ends once access is granted."""
    cluster.forbidden = {"traffictargets"}
    async with asyncio.timeout(5), at_work(cluster) as running:
        assert running.names == [item for item in EVERYTHING if "TrafficTarget" not in item]
        (problem,) = running.source.problems()
        assert problem.code == "MW1113"
        assert "RBAC grants no `list` on `traffictargets.access.smi-spec.io` to mesh" in problem.expected
        fresh = running.source.freshness()
        assert "may not list traffictargets" in fresh.error
        assert fresh.last_full_read is None
        errors = {watch.name: dict(watch.errors) for watch in fresh.watches}
        assert errors["traffictargets.access.smi-spec.io"].keys() == {"forbidden"}
        assert errors["services"] == {}
        cluster.forbidden = set()
        await running.until(lambda: running.names == EVERYTHING and not running.codes)


async def test_core_kinds_are_read_if_discovery_is_forbidden(cluster: Cluster) -> None:
    """They are read at once, and problem MW1113 reports the missing grant."""
    cluster.forbidden = {"apis"}
    async with asyncio.timeout(5), at_work(cluster) as running:
        core = {"EndpointSlice", "Namespace", "Pod", "Service", "ServiceAccount"}
        assert {name.partition(" ")[0] for name in running.names} == core
        assert running.codes == ["MW1113"]


async def test_unenforced_kinds_are_warnings_and_forbidden_ones_leave_the_source_fresh(
    cluster: Cluster,
) -> None:
    """Without access to them there is one warning, and the source's freshness does not suffer."""
    logs = crd("policy.openservicemesh.io", "v1alpha1", "accesscerts", "AccessCert")
    plugin = crd("plugin.flomesh.io", "v1alpha1", "plugins", "Plugin")
    cluster.served += [logs, plugin]
    cluster.put(logs, {"metadata": {"name": "out", "namespace": "shop"}, "spec": {"hosts": ["x.test"]}})
    async with at_work(cluster) as running:
        (problem,) = running.source.problems()
        assert (problem.code, problem.severity, str(problem.key)) == (
            "MW1030",
            "warning",
            "AccessCert shop/out",
        )
    cluster.forbidden = {"accesscerts", "plugins"}
    async with at_work(cluster) as running:
        (answer,) = running.source.problems()
        assert (answer.code, answer.severity) == ("MW1113", "warning")
        assert "may not list accesscerts.policy.openservicemesh.io" in answer.expected
        assert "for each of these 2: Meshwright does not enforce this kind" in answer.expected
        assert "accesscerts.policy.openservicemesh.io, plugins.plugin.flomesh.io" in str(answer.origin)
        fresh = running.source.freshness()
        assert {watch.name for watch in fresh.watches if not watch.needed} == {logs.name, plugin.name}
        assert (fresh.error, fresh.last_full_read is None) == ("", False)


async def test_revoked_grant_keeps_all_objects(cluster: Cluster) -> None:
    """The objects stay in force, with the time since which they may be outdated."""
    async with at_work(cluster) as running:
        cluster.forbidden = {"services"}
        cluster.end_watches()
        await running.until(lambda: running.codes == ["MW1113"])
        assert running.names == EVERYTHING
        assert running.source.freshness().error_since is not None


async def test_objects_stay_while_the_server_is_down(cluster: Cluster) -> None:
    """After the restart, changes of the meantime are found, including a deletion."""
    async with at_work(cluster) as running:
        before = running.source.objects()
        await cluster.stop()
        await running.until(lambda: "MW1113" in running.codes)
        # One problem for all kinds together, and one for the failing discovery.
        text = "for all 7 kinds, the objects read before stay in force"
        await running.until(lambda: any(text in problem.expected for problem in running.source.problems()))
        assert len(running.codes) <= 2
        assert running.source.objects() is before
        assert running.source.freshness().error
        cluster.delete(CORE[SERVICE], "shop", "books")
        await cluster.start()
        await running.until(lambda: not running.codes)
        assert [str(key) for key in running.source.objects().since(before)] == ["Service books/shop"]
        assert "Service books/shop" not in running.names


async def test_server_errors_remove_no_objects_or_kinds(cluster: Cluster) -> None:
    """An error in the discovery of kinds removes nothing either."""
    async with at_work(cluster, hold=timedelta(0)) as running:
        cluster.says = 500
        cluster.end_watches()
        text = "; new and removed kinds are not detected until discovery works again"
        await running.until(lambda: any(text in problem.expected for problem in running.source.problems()))
        assert running.names == EVERYTHING
        cluster.says = 0
        await running.until(lambda: not running.codes)


async def test_empty_list_is_held_and_an_event_takes_effect_at_once(cluster: Cluster) -> None:
    """An emptied etcd gives an empty list; a new object shows that the removal is real."""
    now = timedelta(hours=1)
    async with at_work(cluster, monotonic=lambda: now) as running:
        await _behind_its_back(cluster, running, "vm", "MW1110")
        assert running.names == EVERYTHING
        assert running.source.freshness().held == ("workloads.meshwright.dev",)
        cluster.put(WORKLOADS, objects.workload("other"))
        await running.until(lambda: "Workload shop/other" in running.names)
        assert "Workload shop/vm" not in running.names  # the removal is intended
        assert running.codes == []


async def _behind_its_back(cluster: Cluster, running: Running, name: str, code: str) -> None:
    """Remove a Workload without an event, so that only a list shows it."""
    cluster.delete(WORKLOADS, name, told=False)
    cluster.end_watches()
    await running.until(lambda: running.codes == [code])


async def test_empty_list_takes_effect_after_the_hold(cluster: Cluster) -> None:
    """Once `hold` is over, the object is removed and the problem ends."""
    async with at_work(cluster, hold=timedelta(milliseconds=300)) as running:
        await _behind_its_back(cluster, running, "vm", "MW1110")
        await running.until(lambda: "Workload shop/vm" not in running.names)
        await running.until(lambda: not running.codes)


async def test_added_and_removed_crd_adds_and_removes_its_objects(cluster: Cluster) -> None:
    """The removal takes effect only after the hold."""
    cluster.served.remove(TARGETS)
    async with at_work(cluster, hold=timedelta(milliseconds=300)) as running:
        assert "TrafficTarget shop/t" not in running.names
        cluster.served.append(TARGETS)
        await running.until(lambda: "TrafficTarget shop/t" in running.names)
        cluster.served.remove(TARGETS)
        cluster.end_watches()
        await running.until(lambda: "MW1110" in running.codes)
        assert "TrafficTarget shop/t" in running.names
        await running.until(lambda: "TrafficTarget shop/t" not in running.names)
        await running.until(lambda: not running.codes)
        assert all("traffictargets" not in watch.name for watch in running.source.freshness().watches)


async def test_switch_to_another_version_keeps_the_objects(cluster: Cluster) -> None:
    """The older version is no longer served, and the objects are the same in the newer one."""
    newer, older = TARGETS, replace(TARGETS, version="v1alpha2")
    cluster.served = [*CORE.values(), older]
    async with at_work(cluster, hold=HOLD) as running:
        assert "TrafficTarget shop/t" in running.names
        before = running.source.objects()[TARGET].value
        cluster.served = [*CORE.values(), newer]
        await running.until(lambda: newer.path() in cluster.asked)
        await running.until(lambda: not running.codes)
        assert running.source.objects()[TARGET].value == before


async def test_unreadable_version_is_a_problem_and_keeps_the_objects(cluster: Cluster) -> None:
    """Problem MW1004 names the served versions and the readable ones."""
    async with at_work(cluster, hold=timedelta(0)) as running:
        cluster.served = [*CORE.values(), WORKLOADS, replace(TARGETS, version="v9")]
        await running.until(lambda: "MW1004" in running.codes)
        assert running.names == EVERYTHING
        text = next(str(problem) for problem in running.source.problems() if problem.code == "MW1004")
        assert (
            "the API server serves only the versions v9, and Meshwright reads v1alpha1, v1alpha2, v1alpha3"
            in text
        )


async def test_listed_namespaces_are_watched_one_by_one(cluster: Cluster) -> None:
    """This needs no access to other namespaces, and each Namespace is requested by name."""
    async with at_work(cluster, Scope.from_settings(["shop"], home="mesh-system")) as running:
        assert running.names == [item for item in EVERYTHING if "books" not in item]
        assert {watch.namespace for watch in running.source.freshness().watches} == {"shop"}
        assert not {"/api/v1/services", "/api/v1/pods"} & {*cluster.asked}
        assert "/api/v1/namespaces/shop/services" in cluster.asked
        cluster.put(CORE[SERVICE], objects.service("other", "books"))
        cluster.put(CORE[SERVICE], objects.service("other"))
        await running.until(lambda: "Service shop/other" in running.names)
        assert "Service books/other" not in running.names


async def test_unreadable_namespace_object_is_a_warning_for_listed_namespaces(
    cluster: Cluster,
) -> None:
    """No Role inside a namespace can grant access to the Namespace object, so this is no error."""
    cluster.forbidden = {"namespaces"}
    async with at_work(cluster, Scope.from_settings(["shop"])) as running:
        assert running.names == [
            item for item in EVERYTHING if "books" not in item and "Namespace" not in item
        ]
        (problem,) = running.source.problems()
        assert (problem.code, problem.severity) == ("MW1113", "warning")
        assert "its annotations are ignored" in problem.expected
        assert running.source.freshness().error == ""
    async with at_work(cluster) as running:
        assert [item.severity for item in running.source.problems()] == ["error"]


async def test_namespaces_join_and_leave_by_their_labels(cluster: Cluster) -> None:
    """All objects of the namespace join and leave with it."""
    async with at_work(cluster, Scope.from_settings(labels="team=books")) as running:
        assert running.names == [item for item in EVERYTHING if "books" in item]
        cluster.put(CORE[NAMESPACE], objects.namespace("shop", team="books"))
        await running.until(lambda: running.names == EVERYTHING)
        cluster.put(CORE[NAMESPACE], objects.namespace("books"))
        await running.until(lambda: running.names == [item for item in EVERYTHING if "books" not in item])


async def test_freshness_is_recomputed_only_for_changed_watches(cluster: Cluster) -> None:
    """There may be hundreds of namespaces with several watches each, and it is read every few seconds."""
    names = [f"n{number}" for number in range(12)]
    async with at_work(cluster, Scope.from_settings(["shop", *names])) as running:
        await running.until(lambda: all(watch.last_list for watch in running.source.freshness().watches))
        before = running.source.freshness().watches
        assert len(before) > 50
        assert running.source.freshness().watches is before
        cluster.put(CORE[SERVICE], objects.service("new", "shop"))
        await running.until(lambda: "Service shop/new" in running.names)
        after = running.source.freshness().watches
        other = [watch for watch, was in zip(after, before, strict=True) if watch is not was]
        assert [(watch.name, watch.namespace, watch.events) for watch in other] == [("services", "shop", 1)]


async def test_late_events_of_a_removed_kind_are_ignored(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of events may be in progress while the kind is removed."""
    over, entered, gate = Turn.over, asyncio.Event(), asyncio.Event()
    held = list[asyncio.Task[Any] | None]()

    async def holding(self: Turn) -> None:
        if not gate.is_set() and asyncio.current_task() in held:
            entered.set()
            await gate.wait()
        await over(self)

    async with at_work(cluster, hold=SOON) as running:
        held += [task for task in asyncio.all_tasks() if "traffictargets" in task.get_name()]
        assert held
        monkeypatch.setattr(Turn, "over", holding)
        cluster.put(TARGETS, objects.target("u"))
        await asyncio.wait_for(entered.wait(), 60)
        cluster.served.remove(TARGETS)
        (batch,) = held
        assert batch is not None
        await asyncio.wait([batch], timeout=60)
        cluster.put(CORE[SERVICE], objects.service("later", "shop"))
        await running.until(lambda: "Service shop/later" in running.names)
        assert not any("TrafficTarget" in name for name in running.names)


async def test_source_starts_with_the_saved_state_if_the_server_is_down(cluster: Cluster) -> None:
    """The source is degraded, shows the age of its state, and catches up once the server is back."""
    kept: list[SavedState] = []
    async with at_work(cluster, keep=kept.append) as running:
        first = running.source.freshness().last_full_read
        assert first is not None
    (saved_state,) = kept
    await cluster.stop()
    async with asyncio.timeout(8), at_work(cluster, kept=saved_state) as running:
        assert running.names == EVERYTHING
        assert set(running.codes) == {"MW1113"}
        fresh = running.source.freshness()
        assert fresh.error
        assert fresh.last_full_read is not None
        assert first <= fresh.last_full_read < utc_now()
        before = running.source.objects()
        cluster.delete(TARGETS, "t")
        cluster.put(TARGETS, objects.target("u"))
        await cluster.start()
        await running.until(lambda: not running.codes and "TrafficTarget shop/u" in running.names)
        assert len(running.source.objects().since(before)) == 2


async def _kept_of(cluster: Cluster) -> SavedState:
    kept: list[SavedState] = []
    async with at_work(cluster, keep=kept.append):
        pass
    return kept[-1]


@pytest.mark.parametrize("other", [{"name": "west"}, {"server": "of another URL or CA"}])
async def test_saved_state_of_another_cluster_is_not_used(cluster: Cluster, other: dict[str, str]) -> None:
    """Without a server the source then fails to start."""
    kept = await _kept_of(cluster)
    assert kept.cluster.uid == "uid-of-east"
    await cluster.stop()
    with pytest.raises(SourceError, match="cannot read the cluster east"):
        async with at_work(
            cluster, kept=replace(kept, cluster=replace(kept.cluster, **other)), keep=_nowhere, patience=SOON
        ):
            pass


async def test_recreated_cluster_is_detected_by_its_uid(cluster: Cluster) -> None:
    """Its address and CA are unchanged, but no object of the old cluster is in force."""
    kept = await _kept_of(cluster)
    cluster.uid = "made anew"
    cluster.delete(TARGETS, "t")
    cluster.forbidden.add("workloads")
    again: list[SavedState] = []
    async with at_work(cluster, kept=kept, keep=again.append) as running:
        assert running.names == [
            item for item in EVERYTHING if item not in ("TrafficTarget shop/t", "Workload shop/vm")
        ]
    assert again[-1].cluster == replace(kept.cluster, uid="made anew")


async def test_saved_state_is_replaced_as_a_whole_once_the_cluster_proves_to_be_another(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was down at the start, so the saved state was in force; no mixed state is ever published."""
    monkeypatch.setattr(source, "AGAIN", SOON)  # the default interval between identity checks is 5 s
    kept = await _kept_of(cluster)
    cluster.uid = "made anew"
    cluster.delete(TARGETS, "t")
    cluster.forbidden.add("workloads")
    await cluster.stop()
    async with at_work(cluster, kept=kept, keep=_nowhere) as running:
        assert running.names == EVERYTHING
        seen = [running.names]
        await cluster.start()
        there = [item for item in EVERYTHING if item not in ("TrafficTarget shop/t", "Workload shop/vm")]

        def is_replaced() -> bool:
            seen.append(running.names)
            return seen[-1] == there

        await running.until(is_replaced)
        assert all(item in (EVERYTHING, there) for item in seen)
        cluster.put(TARGETS, objects.target("u"))
        await running.until(lambda: "TrafficTarget shop/u" in running.names)


async def test_cluster_with_unreadable_uid_is_identified_by_its_address(cluster: Cluster) -> None:
    """The saved state is used, with a warning until the UID of kube-system can be read."""
    kept = await _kept_of(cluster)
    cluster.uid, cluster.forbidden = None, {"traffictargets"}
    async with at_work(cluster, kept=kept, keep=_nowhere) as running:
        assert "TrafficTarget shop/t" in running.names
        (problem,) = [item for item in running.source.problems() if "kube-system" in str(item)]
        assert (problem.code, problem.severity) == ("MW1113", "warning")
        assert not running.source.freshness().error.startswith("namespaces kube-system")
        cluster.uid = kept.cluster.uid
        await running.until(lambda: not any("kube-system" in str(item) for item in running.source.problems()))


async def test_source_that_saves_no_state_does_not_read_the_cluster_uid(cluster: Cluster) -> None:
    """`lint --kubernetes` thus needs no access to kube-system."""
    async with at_work(cluster):
        assert not any(item.endswith("/kube-system") for item in cluster.asked)


def _nowhere(kept: SavedState) -> None:
    """Discard the state."""


async def test_source_without_server_and_saved_state_fails_to_start(cluster: Cluster) -> None:
    """The error names the cluster and its address."""
    await cluster.stop()
    with pytest.raises(SourceError, match=r"cannot read the cluster east: .*127\.0\.0\.1"):
        async with at_work(cluster, patience=timedelta(milliseconds=300)):
            pass


async def test_selector_without_access_to_namespaces_fails_to_start(cluster: Cluster) -> None:
    """The mesh would seem empty otherwise; a list of namespaces still works."""
    cluster.forbidden = {"namespaces"}
    with pytest.raises(SourceError, match="RBAC grants no `list` on `namespaces`"):
        async with at_work(cluster, Scope.from_settings(labels="team=shop")):
            pass
    async with at_work(cluster, Scope.from_settings(["shop"])) as running:
        assert "Service shop/shop" in running.names


async def test_source_without_saved_state_waits_for_the_server(cluster: Cluster) -> None:
    """Without its objects the mesh would be empty."""
    await cluster.stop()
    async with cluster.api() as api:
        source = KubernetesSource(api, Scope.from_settings(), utc_now, discover=SOON, pacing=PACING)
        first = asyncio.create_task(source.first())
        running = Running(source)
        await running.until(lambda: bool(source.freshness().error))
        await cluster.start()
        async with asyncio.timeout(10):
            await first
        assert running.names == EVERYTHING
        await source.stop()
