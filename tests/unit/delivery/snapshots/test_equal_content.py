"""Tests of resources with equal content but other inputs: the newer resource replaces the older."""

import weakref
from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.policy.units import unit_id
from catalog.policy.values.inbound import EveryoneInTheMesh
from catalog.store.view import View
from meshwright.delivery.model import Inputs
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.quarantine.reduced_snapshot import lessened
from meshwright.delivery.self_check import compute_from_inputs
from meshwright.delivery.snapshots.consistency import LastSnapshot, after
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.delivery.snapshots.sets import SetBuilder
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import values as a
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    ROUTE,
    Narrowing,
    Renewal,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response

EVERYONE = EveryoneInTheMesh()
SHOP = NodeKey("shop-uuid.shop.default")
CREDENTIALS = {identity: a.certificate(identity, "1") for identity in map(a.identity, ("shop", "x"))}


class Follower:
    """A server that follows a mesh."""

    def __init__(self, *things: object) -> None:
        self.view = a.view(*things)
        self.serving = GroupSnapshots(self.view, translation(EnvoyDriver()))
        self.serving.rendering.certify(CREDENTIALS, b"ROOT")
        self.published = PublishedSnapshots()
        self._wave()

    def own(self) -> Snapshot:
        """Return the snapshot of the shop."""
        snapshot = self.published.snapshot(SHOP)
        assert snapshot is not None
        return snapshot

    def move(self, domain: TrustDomain) -> None:
        """Change the trust domain."""
        settings = replace(self.view.settings, trust_domain=domain)
        self.view.apply(replace(self.view.edits_to(self.view.known()), settings=settings))
        self._wave()

    def _wave(self) -> None:
        for step in self.serving.steps(self.published, self.serving.touched()):
            if step is not None:
                self.published = step.after(self.published)


def _anew(view: View) -> PublishedSnapshots:
    return compute_from_inputs(
        Inputs(view.known(), view.settings, CREDENTIALS, b"ROOT"), translation(EnvoyDriver())
    )


def _without_everyone(published_snapshots: PublishedSnapshots) -> Snapshot:
    own = published_snapshots.snapshot(SHOP)
    assert own is not None
    return lessened(own, {unit_id(EVERYONE)}, lambda _: None)


def test_policy_without_the_permissive_unit_has_the_current_trust_domain() -> None:
    """A route that admits everyone does not depend on the trust domain, so its content stays.

    If a proxy refuses that unit, the rest must be of the current policy.
    """
    there = (
        a.namespace("default", permissive=True),
        *(a.workload(name, f"10.0.0.{number}") for number, name in enumerate(("shop", "x"), 1)),
        *(a.service("shop"), a.route_group("r", a.match("m", "/m"))),
        a.target("t", "x", "shop", a.http("r")),
    )
    mesh = Follower(*there)
    before, earlier = mesh.own(), _without_everyone(mesh.published)
    mesh.move(TrustDomain("other.local"))
    assert mesh.own().version(ROUTE) == before.version(ROUTE), "nothing of it is seen by who has it"
    now = _without_everyone(mesh.published)
    assert now.version(ROUTE) != earlier.version(ROUTE)
    assert now == _without_everyone(_anew(mesh.view))


Batch = tuple[Resource, ...]

GROUP, NODE = GroupKey("group"), NodeKey("node")
COUNTS = (2, 200)
"""Few are a dictionary, many are laid over others."""


def _resource(kind: TypeUrl, number: int, version: str = "1") -> Resource:
    return Resource(kind, ResourceName(str(number)), Version(version), b"", recipe="one")


def _batch(count: int) -> Batch:
    return tuple(_resource(kind, number) for kind in (CLUSTER, ENDPOINT) for number in range(count))


def _narrows(before: Resource, now: Resource) -> frozenset[str]:
    return frozenset({"k"} if before.version < now.version else ())


def _interim(listener: Resource, narrowings: frozenset[Narrowing]) -> Resource:
    return replace(listener, version=Version(f"{len(narrowings)}"))


OTHERS: dict[str, Callable[[Resource], Resource]] = {
    "references": lambda resource: replace(resource, references=((CLUSTER, ResourceName("0")),)),
    "on demand": lambda resource: replace(resource, on_demand=True),
    "time to live": lambda resource: replace(resource, ttl_seconds=1.0),
    "secret": lambda resource: replace(resource, secret=True),
    "recipe": lambda resource: replace(resource, recipe="two"),
    "renewal": lambda resource: replace(resource, renewal=Renewal(_narrows, _interim)),
}
"""What may be another one of a resource though its content is not."""


def _after(old: Batch, new: Batch) -> tuple[ResourceSet, ResourceSet]:
    before = ResourceSet.of(old)
    return before, after(before, new)


def _after_last(old: Batch, new: Batch) -> tuple[ResourceSet, ResourceSet]:
    before = ResourceSet.of(old)
    return before, after(before, new, LastSnapshot(old, weakref.ref(before)))


def _batches(old: Batch, new: Batch) -> tuple[ResourceSet, ResourceSet]:
    sets = SetBuilder()
    known = tuple((resource,) for resource in old)
    before = sets.build_set(known)
    pairs = zip(known, old, new, strict=True)
    return before, sets.build_set(had if was is now else (now,) for had, was, now in pairs)


def _looked_through(old: Batch, new: Batch) -> tuple[ResourceSet, ResourceSet]:
    return ResourceSet.of(old), ResourceSet.of(new)


WAYS = (_after, _after_last, _batches, _looked_through)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("way", WAYS)
def test_resource_of_equal_content_replaces_the_older_one(
    way: Callable[[Batch, Batch], tuple[ResourceSet, ResourceSet]], what: str, count: int
) -> None:
    """This holds in a set, in snapshots, and in the cache.

    Clients see a step only if the resource becomes on-demand or gets a time to live.
    """
    old = _batch(count)
    now = OTHERS[what](old[-1])
    before, resource_set = way(old, (*old[:-1], now))
    beside = ResourceSet.of([replace(_resource(CLUSTER, count), references=())])
    seen = {ENDPOINT: {now.name}} if what in ("on demand", "time to live") else {}
    assert resource_set.changed_since(before) == seen
    assert resource_set.resources(ENDPOINT).version == before.resources(ENDPOINT).version
    for parts in ((), (beside,)):
        was = Snapshot.joined((*parts, before))
        assert was.missing() == ()
        snapshot = Snapshot.joined((*parts, resource_set), was)
        assert snapshot.resources(ENDPOINT)[now.name] is now
        assert snapshot.living(ENDPOINT) == ((now,) if what == "time to live" else ())
        assert snapshot.on_demand(ENDPOINT) == ({now.name} if what == "on demand" else set())
        assert snapshot.changed_since(was) == seen
        assert snapshot != was
        assert _served(was, snapshot) == (snapshot, 1, 1 if seen else 0)


def _served(was: Snapshot, now: Snapshot) -> tuple[Snapshot | None, int, int]:
    """Return the served snapshot, the number of woken streams, and the number of affected proxies."""
    woken: list[NodeKey] = []
    cache = SnapshotCache()
    cache.watch(NODE, lambda: woken.append(NODE))
    cache.publish({GROUP: was}, {NODE: GROUP})
    woken.clear()
    concerned = cache.publish_changes({GROUP: now}, {})
    return cache.snapshot(NODE), len(woken), concerned


@pytest.mark.parametrize("what", OTHERS)
def test_changed_reference_of_a_resource_of_equal_content_is_checked(what: str) -> None:
    """A reference to a missing resource makes the snapshot inconsistent, whatever the content."""
    old = _batch(1)
    was = Snapshot.joined((ResourceSet.of(old[:1]), ResourceSet.of(old[1:])))
    assert was.missing() == ()
    lost = replace(OTHERS[what](old[1]), references=((CLUSTER, ResourceName("gone")),))
    now = Snapshot.joined((was.parts[0], after(was.parts[1], (lost,))), was)
    assert now.missing() == ((lost, CLUSTER, "gone"),)


def test_variant_for_a_rejection_has_the_current_resources() -> None:
    """The variant keeps its content and name, but its other resources are replaced by newer ones."""
    quarantine = Quarantine(empty)
    old, *versions = (_resource(CLUSTER, 0, item) for item in "123")
    beside = _resource(ENDPOINT, 0)

    def publish(*resources: Resource) -> None:
        quarantine.after(Step({GROUP: Snapshot.of(resources)}, {NODE: GROUP}))

    publish(old, beside)
    publish(versions[0], beside)
    response = Response(CLUSTER, Version("v"), Nonce("1"), (versions[0],))
    quarantine.answered(NODE, response, Rejection(13, "no"), lambda: Moment(0.0, a.EPOCH))
    before = quarantine.served()
    publish(versions[0], now := replace(beside, recipe="two"))
    snapshot = quarantine.served().snapshot(NODE)
    assert snapshot is not None
    assert quarantine.served().members[NODE] == before.members[NODE] != GROUP
    assert snapshot.resources(CLUSTER)[old.name] == old
    assert snapshot.resources(ENDPOINT)[now.name] is now
