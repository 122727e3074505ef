"""Tests of the work in permissive mode: shared values and resources are made once, counted."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from benchmarks.meshes.generator import (
    CONFIG,
    NAMESPACES,
    callers,
    mesh,
    service_key,
    service_objects,
    sourced,
    split,
    workload,
)
from catalog.relations.identities import service_identities
from catalog.store.edits import Edits
from catalog.store.view import MeshSettings, View
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.snapshots import group_snapshots as serving
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import UPSTREAM_TRAFFIC_SETTING, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.listeners import outbound as outbound_listeners
from tests.meshes import values as a
from xds.cache import NodeKey
from xds.protocol.resources import resource_set
from xds.protocol.resources import snapshot as snapshots
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response

NOW = Moment(0.0, datetime(2026, 1, 1, tzinfo=UTC))
CLOSED = tuple(Namespace(f"team-{number}") for number in range(NAMESPACES // 2))
MODES = ("policy", "permissive", "mixed")
MOVED, SPLIT = 5, 10
"""The service whose endpoint moves, and that whose shares change; the latter is closed in mixed meshes."""


@dataclass(frozen=True)
class Work:
    """The cost of a change: computed values, made pieces, changed groups, and their changed types."""

    computed: int
    encoded: int
    groups: int
    types: frozenset[TypeUrl]


class Server:
    """A server for some groups of a mesh: two services, a third, and all callers of the two."""

    def __init__(self, services: int, mode: str) -> None:
        self.services = services
        objects = dict(mesh(services, replicas=1).objects)
        if mode != "policy":
            objects[CONFIG] = sourced(CONFIG, MeshConfig(permissive=True))
        if mode == "mixed":
            for namespace in CLOSED:
                key = ObjectKey.of_namespace(namespace)
                objects[key] = sourced(key, a.namespace(namespace, permissive=False))
        self.view = View.build(objects, MeshSettings())
        self.serving = GroupSnapshots(self.view, translation(EnvoyDriver()))
        self._certify()
        self.published = PublishedSnapshots()
        numbers = {MOVED, SPLIT, 3, *callers(MOVED, services), *callers(SPLIT, services)}
        self.served = {f"service-{number}" for number in numbers}

    def _certify(self) -> None:
        service_certificates = {
            service_identity: a.certificate(service_identity, "1")
            for service_identity in service_identities(self.view)
        }
        self.serving.rendering.certify(service_certificates, b"ROOT")

    def work(self, edits: Edits | None = None) -> Work:
        """Apply edits; return their cost."""
        graph, rendering = self.view.graph, self.serving.rendering
        self.view.apply(edits or Edits())
        computed, encoded = graph.computed, rendering.encoded
        touched = [
            proxy_group for proxy_group in self.serving.touched() if proxy_group.primary.name in self.served
        ]
        step = _last(self.serving.steps(self.published, sorted(touched, key=repr)))
        assert not any(step.failed.values())
        before, self.published = self.published, step.after(self.published)
        types = {
            type_url
            for name, now in step.snapshots.items()
            if now is not None
            for type_url in now.changed_since(before.snapshots.get(name))
        }
        return Work(
            graph.computed - computed, rendering.encoded - encoded, len(step.snapshots), frozenset(types)
        )

    def all_work(self) -> dict[str, Work]:
        """Return the cost of each kind of change."""
        last = self.services
        works = {"start": self.work()}
        key, weighed = split(SPLIT, last, 7)
        moved = workload(MOVED, 0, moved=1)
        place = ObjectKey.from_name(WORKLOAD, moved.key)
        works["endpoint"] = self.work(Edits({place: sourced(place, moved)}))
        works["weight"] = self.work(Edits({key: sourced(key, weighed)}))
        limits = setting(MOVED)
        works["limits"] = self.work(Edits({limits.key: limits}))
        new = service_objects(last + 5, last + 100)  # without callers, in an open namespace
        works["service"] = self.work(Edits({key: sourced(key, value) for key, value in new[:2]}))
        return works


@functools.cache
def all_work(services: int, mode: str) -> dict[str, Work]:
    """Return the cost of each kind of change in a new server, which is computed once for all tests."""
    return Server(services, mode).all_work()


def setting(number: int) -> SourcedObject:
    """Return limits of a service, for its callers and for its own sidecar."""
    name = service_key(number)
    rates = RateLimits(requests=RateLimit(1, RateUnit.HOUR))
    upstream_traffic_setting = UpstreamTrafficSetting(
        PolicyKey(name.namespace, "limits"), f"{name.name}.{name.namespace}", ConnectionLimits(1), rates
    )
    return sourced(
        ObjectKey.from_name(UPSTREAM_TRAFFIC_SETTING, upstream_traffic_setting.key), upstream_traffic_setting
    )


def _last(steps: Iterator[Step | None]) -> Step:
    (step,) = [item for item in steps if item is not None]
    return step


@pytest.mark.parametrize("mode", MODES)
def test_change_costs_the_same_in_a_larger_mesh(mode: str) -> None:
    """Values, pieces and groups are as many with 200 services as with 50."""
    small, large = all_work(50, mode), all_work(200, mode)
    for change in ("endpoint", "weight", "limits", "service"):
        assert large[change] == small[change], change


@pytest.mark.parametrize("services", [50, 200])
def test_resources_for_all_callers_are_made_once(services: int) -> None:
    """The start makes one listener, and a route, a cluster and an assignment for each service.

    Later only the changed resources are made.
    """
    works = all_work(services, "permissive")
    served = works["start"].groups
    own = 5 * served  # each group's listener, application, rules and both secrets; the roots are shared
    assert works["start"].encoded == 3 * services + 1 + own - (served - 1)
    assert works["endpoint"] == Work(works["endpoint"].computed, 1, served, frozenset({ENDPOINT}))
    assert works["weight"] == Work(works["weight"].computed, 1, served, frozenset({ROUTE}))
    # One cluster, which all callers share, and the server's listener and rules.
    limited = Work(works["limits"].computed, 3, served, frozenset({CLUSTER, LISTENER, ROUTE}))
    assert works["limits"] == limited
    new = frozenset({LISTENER, ROUTE, CLUSTER, ENDPOINT})
    assert works["service"] == Work(works["service"].computed, 4, served, new)


def test_endpoint_of_a_shared_service_is_computed_once_for_all_groups() -> None:
    """With 50 groups more, no further value is computed or compared."""
    few, many = Server(100, "permissive"), Server(100, "permissive")
    many.served.update(f"service-{number}" for number in range(100))
    moved = workload(MOVED, 0, moved=1)
    place = ObjectKey.from_name(WORKLOAD, moved.key)
    result = []
    for server in (few, many):
        server.work()
        reused = server.view.graph.reused
        work = server.work(Edits({place: sourced(place, moved)}))
        result.append((work.groups, work.computed, server.view.graph.reused - reused))
    assert result[0][0] + 50 < result[1][0]
    assert result[0][1:] == result[1][1:]


def test_groups_with_a_changed_shared_part_only_join_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step of a moved endpoint is computed once for all groups.

    Only groups whose own policy involves its service are checked themselves.
    """
    server = Server(100, "permissive")
    server.served.update(f"service-{number}" for number in range(100))
    server.work()
    looks = Counter[str]()
    for module, name in ((serving, "consistent"), (snapshots, "_joined"), (resource_set, "needs_of")):
        monkeypatch.setattr(module, name, _counted(getattr(module, name), looks))
    chains = outbound_listeners._service_chain.cache_info()
    moved = workload(MOVED, 0, moved=1)
    place = ObjectKey.from_name(WORKLOAD, moved.key)
    assert server.work(Edits({place: sourced(place, moved)})).groups == 100
    assert looks == {"consistent": len({MOVED, *callers(MOVED, 100)})}
    assert outbound_listeners._service_chain.cache_info() == chains
    for snapshot in server.published.snapshots.values():
        assert snapshot == Snapshot.of(r for t in snapshot.types() for r in snapshot.ordered(t))
        assert snapshot.is_consistent


def _counted(function: Callable[..., object], calls: Counter[str]) -> Callable[..., object]:
    def counting(*args: object, **kwargs: object) -> object:
        calls[function.__name__] += 1
        return function(*args, **kwargs)

    return counting


@pytest.mark.parametrize("mode", ["permissive", "mixed"])
def test_groups_share_one_set_of_resources_open_to_all(mode: str) -> None:
    """Each snapshot has this set and a set of its own."""
    server = Server(50, mode)
    server.all_work()
    snapshots = list(server.published.snapshots.values())
    shared = {id(snapshot.parts[0]) for snapshot in snapshots}
    assert len(snapshots) > 5
    assert len(shared) == 1
    assert all(len(snapshot.parts) == 2 for snapshot in snapshots)
    assert len(snapshots[0].parts[0].resources(CLUSTER)) >= 25


def test_callers_in_policy_mode_share_the_cluster_of_a_service() -> None:
    """All callers have one cluster object, although each has its own certificate."""
    server = Server(50, "policy")
    server.work()
    name = ResourceName("team-5/service-5|8080")
    snapshots = server.published.snapshots.values()
    held = [
        resource for snapshot in snapshots if (resource := snapshot.resources(CLUSTER).get(name)) is not None
    ]
    assert len(held) == len(callers(MOVED, 50))
    assert len({id(resource) for resource in held}) == 1


def test_rejected_shared_cluster_changes_the_snapshot_of_one_proxy() -> None:
    """The proxy's variant has an empty cluster and shares all else; other snapshots stay as they are."""
    server = Server(50, "permissive")
    server.work()
    quarantine = Quarantine(EnvoyDriver().empty)
    quarantine.after(Step(server.published.snapshots, server.published.members))
    node, name = NodeKey("uuid-service-3-0.service-3.team-3"), ResourceName("team-7/service-7|8080")
    own = server.published.snapshot(node)
    assert own is not None
    bad = own.resources(CLUSTER)[name]
    response = Response(CLUSTER, Version("v"), Nonce("1"), (bad,))
    step = quarantine.answered(node, response, Rejection(13, f"bad {name}"), lambda: NOW)
    assert step is not None
    (variant,) = step.snapshots.values()
    assert variant is not None
    assert {kind: set(names) for kind, names in variant.changed_since(own).items()} == {CLUSTER: {name}}
    assert variant.resources(ENDPOINT) is own.resources(ENDPOINT)
    others = [
        snapshot for key, snapshot in quarantine.served().snapshots.items() if key not in step.snapshots
    ]
    assert {id(item) for item in others} == {id(item) for item in server.published.snapshots.values()}


def test_shared_cluster_is_traced_to_its_objects() -> None:
    """From any group it leads to its service, its workloads and the MeshConfig, and to no others."""
    server = Server(50, "permissive")
    server.work()
    group = server.serving.group(NodeKey("uuid-service-3-0.service-3.team-3"))
    assert group is not None
    behind = server.serving.objects_behind(group, CLUSTER, ResourceName("team-7/service-7|8080"))
    named = {str(input_object.key) for input_object in behind}
    assert {"Service team-7/service-7", "Workload team-7/service-7-0", f"MeshConfig {CONFIG.path}"} <= named
    assert not any("service-8" in item for item in named)


@pytest.mark.parametrize("mode", MODES[1:])
def test_shared_resources_are_made_in_steps(mode: str) -> None:
    """The first served group makes them, and the event loop must serve other tasks in between."""
    most = []
    for services in (50, 100):
        server = Server(services, mode)
        graph, rendering = server.view.graph, server.serving.rendering
        first = sorted(server.serving.touched(), key=repr)[:1]
        made, derived = [0], [graph.computed]
        for _ in server.serving.steps(server.published, first):
            made.append(rendering.encoded)
            derived.append(graph.computed)
        longest = max(after - before for before, after in itertools.pairwise(made))
        assert 4 * longest <= made[-1], "the pieces that are its own, at the most"
        most.append(max(after - before for before, after in itertools.pairwise(derived)))
    assert most[0] == most[1] < 100, "the values of a service, or its own; not those of all"


def test_shared_listener_is_made_one_chain_per_step() -> None:
    """Its 50 chains are made in separate steps, before the listener is assembled."""
    server = Server(50, "permissive")
    outbound_listeners._service_chain.cache_clear()
    first = sorted(server.serving.touched(), key=repr)[:1]
    steps = server.serving.steps(server.published, first)
    made = [0, *(outbound_listeners._service_chain.cache_info().misses for _ in steps)]
    assert made[-1] == 50
    assert max(after - before for before, after in itertools.pairwise(made)) == 1
