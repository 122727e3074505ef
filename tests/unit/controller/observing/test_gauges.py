"""Tests of the gauges of the whole mesh."""

import random
import sys
from datetime import datetime, timedelta
from types import FrameType

from meshwright.admin.metrics.gauges import Gauges
from meshwright.controller.observing.gauges import GaugeBuilder, ResourceCounts, withheld_counts
from meshwright.delivery.loop import MeshState
from meshwright.delivery.problems import AllProblems
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Service, ServiceKey
from meshwright.providers.contract import Counts, Freshness
from tests.meshes.sources import MemorySource
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.layers import Layers
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.snapshot import Snapshot


def _resource(type_url: TypeUrl, name: str, version: str) -> Resource:
    return Resource(type_url, ResourceName(name), Version(version), b"")


def test_resource_shared_by_groups_is_counted_once() -> None:
    """Resources are counted by type, name and version."""
    shared, own = _resource(CLUSTER, "a", "1"), _resource(CLUSTER, "a", "2")
    listener = _resource(LISTENER, "a", "1")
    snapshots = [Snapshot.of([shared, listener]), Snapshot.of([shared]), Snapshot.of([own])]
    assert ResourceCounts().count_by_type(_named(snapshots)) == {"cluster": 2, "listener": 1}


def _named(snapshots: list[Snapshot]) -> Layers[GroupKey, Snapshot]:
    return Layers({GroupKey(f"g{number}"): snapshot for number, snapshot in enumerate(snapshots)})


def test_incremental_count_equals_a_full_count() -> None:
    """Both counts agree over random histories of up to three groups.

    Resources are added, changed, shared and removed.
    """
    chance = random.Random(5)  # noqa: S311 - histories, not keys
    following = ResourceCounts()
    for _ in range(300):
        made = [
            Snapshot.of(
                _resource(kind, name, chance.choice("12"))
                for kind in (CLUSTER, LISTENER)
                for name in chance.sample("abc", chance.randint(0, 3))
            )
            for _ in range(chance.randint(0, 3))
        ]
        assert following.count_by_type(_named(made)) == ResourceCounts().count_by_type(_named(made))


def test_parts_shared_by_groups_are_counted_once() -> None:
    """Both counts agree over random histories of up to three groups.

    The groups share some of four changing parts.
    """
    chance = random.Random(6)  # noqa: S311 - histories, not keys
    following = ResourceCounts()
    parts = [ResourceSet.of([_resource(CLUSTER, f"own-{number}", "1")]) for number in range(4)]
    for _ in range(300):
        number = chance.randrange(4)
        put = [
            _resource(chance.choice((CLUSTER, ROUTE)), f"{number}-{chance.choice('ab')}", chance.choice("12"))
        ]
        parts[number] = parts[number].changed(
            put, [(CLUSTER, ResourceName(f"{number}-a"))][: chance.randrange(2)]
        )
        made = [
            Snapshot.joined(chance.sample(parts, chance.randint(1, 4))) for _ in range(chance.randint(0, 3))
        ]
        plain = [Snapshot.of(resource for t in one.types() for resource in one.ordered(t)) for one in made]
        assert following.count_by_type(_named(made)) == ResourceCounts().count_by_type(_named(plain))


def test_cost_of_a_count_depends_on_the_change_only() -> None:
    """A change in a shared part costs the same for 300 and 1200 resources, with 20 groups."""
    costs = []
    for size in (300, 1200):
        part = ResourceSet.of(_resource(CLUSTER, f"c{number}", "1") for number in range(size))
        own = [ResourceSet.of([_resource(LISTENER, f"l{number}", "1")]) for number in range(20)]
        counts = ResourceCounts()
        assert (
            counts.count_by_type(_named([Snapshot.joined([part, resource_set]) for resource_set in own]))[
                "cluster"
            ]
            == size
        )
        after = part.changed([_resource(CLUSTER, "c1", "2")], [(CLUSTER, ResourceName("c2"))])
        groups = _named([Snapshot.joined([after, resource_set]) for resource_set in own])
        calls = 0

        def noted(_: FrameType, event: str, __: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(noted)
        result = counts.count_by_type(groups)
        sys.setprofile(None)
        assert result == {"cluster": size - 1, "listener": 20}
        costs.append(calls)
    assert costs[1] <= 1.05 * costs[0]


def test_gauges_are_built_from_the_given_state(now: datetime) -> None:
    """All gauges are set from snapshots, problems, sources and the given numbers."""
    group = GroupKey("g")
    published = PublishedSnapshots(
        Layers({group: Snapshot.of([_resource(CLUSTER, "a", "1")])}),
        Layers({NodeKey("n1"): group, NodeKey("n2"): group}),
    )
    problem = Problem(code="c", severity=Severity.WARNING, origin=InFile("f"), expected="")
    all_problems = AllProblems()
    all_problems.report("lint", None, (problem,))
    read, seen = now - timedelta(seconds=3), now - timedelta(seconds=2)
    fresh = Freshness(last_event=seen, last_full_read=read, error="gone", error_since=now, held=("all",))
    source = MemorySource("directory", freshness=fresh)
    source.held = Counts(2, 1, 0)
    made = GaugeBuilder().gauges(
        MeshState(None, published, all_problems),
        {"delta": 2},
        {"connected": 1},
        [source],
        4,
        0.5,
        now,
        withheld={"route": 1},
        unacked_age=0.25,
    )
    assert made == Gauges(
        streams={"delta": 2},
        proxies={"connected": 1},
        resources={"cluster": 1},
        groups=1,
        problems={"error": 0, "warning": 1, "info": 0},
        source_age={"directory": 3.0},
        source_event_age={"directory": 2.0},
        source_objects={("directory", "good"): 2, ("directory", "stale"): 1, ("directory", "refused"): 0},
        source_held={"directory": 1},
        withheld={"route": 1},
        unacked_age=0.25,
        source_failing={"directory": True},
        certificates=4,
        loop_lateness=0.5,
    )


def _problem(name: str, severity: Severity) -> Problem:
    return Problem(code="c", severity=severity, origin=InFile("f"), key=_key(name), expected="")


def _key(name: str) -> ObjectKey:
    return ObjectKey(SERVICE, Namespace("shop"), name)


def test_objects_are_counted_as_good_stale_or_refused() -> None:
    """An object with errors that is not in force is refused, and counted once; a warning does not count."""
    value = Service(ServiceKey(Namespace("shop"), ServiceName("a")), (), ())
    objects = {
        _key(name): SourcedObject(_key(name), value, InFile("f"), stale=name == "old")
        for name in ("a", "b", "old")
    }
    problems = [
        _problem("old", Severity.ERROR),
        _problem("bad", Severity.ERROR),
        _problem("bad", Severity.ERROR),
        _problem("odd", Severity.WARNING),
    ]
    assert Counts.count(objects, 1, problems) == Counts(good=2, stale=1, refused=1)


def test_withheld_resources_are_counted_by_short_type_name() -> None:
    """The keys are the short names of types, as in metrics."""
    assert withheld_counts({ROUTE: 2, CLUSTER: 1}) == {"route": 2, "cluster": 1}
