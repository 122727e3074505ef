"""Tests of the quarantine: a proxy that rejects a version gets its last good one."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.delivery.quarantine.findings import RejectedResource
from meshwright.delivery.quarantine.quarantine import Judge, Quarantine, by_content
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.envoy.reasons import reason
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    SECRET,
    Reference,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response

NOW = Moment(0.0, datetime(2026, 1, 1, tzinfo=UTC))
ONE, OTHER = NodeKey("a.shop.default"), NodeKey("b.shop.default")
GROUP = GroupKey("shop")


def _resource(type_url: TypeUrl, name: str, version: str, *references: Reference) -> Resource:
    return Resource(type_url, ResourceName(name), Version(version), b"", tuple(sorted(references)))


def _empty(key: Reference) -> Resource | None:
    return None if key[0] == SECRET else _resource(key[0], key[1], "empty")


def _route(version: str, name: str = "r") -> Resource:
    return _resource(ROUTE, name, version)


class Plane:
    """Snapshots of one group, a cache of what is served, and two proxies that answer."""

    def __init__(self, *resources: Resource, reason: Judge = by_content) -> None:
        self.acknowledged: dict[NodeKey, Acknowledged] = defaultdict(dict)
        self.emptied: list[Reference] = []
        self.quarantine = Quarantine(self._empty, reason, acknowledged=self.acknowledged.__getitem__)
        self.cache = SnapshotCache()
        self.published = PublishedSnapshots()
        self.publish(*resources, members=dict.fromkeys((ONE, OTHER), GROUP))

    def publish(self, *resources: Resource, members: dict[NodeKey, GroupKey | None] | None = None) -> None:
        """Serve the group other resources."""
        step = Step({GROUP: Snapshot.of(resources)}, members or {})
        self.published = step.after(self.published)
        self._serve(self.quarantine.after(step))

    def accept(self, node: NodeKey, *resources: Resource) -> None:
        """Acknowledge resources of one type."""
        self._answer(node, resources, None)

    def reject(self, node: NodeKey, *resources: Resource, said: str = "no") -> None:
        """Reject a response with resources of one type."""
        self._answer(node, resources, Rejection(13, said))

    def served(self, node: NodeKey, type_url: TypeUrl = ROUTE) -> dict[str, str]:
        """Return what a proxy is served of a type: names and versions."""
        snapshot = self.cache.snapshot(node)
        return {} if snapshot is None else {str(k): str(v) for k, v in snapshot.versions(type_url).items()}

    def size(self) -> int:
        """Return the number of remembered resources, with each reference counted."""
        noted = (*self.acknowledged.values(), *self.quarantine._accepted._by_group.values())
        count = sum(
            len(acknowledged_versions.get(name))
            for held in noted
            for acknowledged_versions in held.values()
            for name in {*acknowledged_versions.whole, *acknowledged_versions.named}
        )
        return count + sum(len(record.good) for record in self.quarantine._records.by_node.values())

    def _empty(self, key: Reference) -> Resource | None:
        self.emptied.append(key)
        return _empty(key)

    def _answer(self, node: NodeKey, resources: Iterable[Resource], rejection: Rejection | None) -> None:
        result = tuple(resources)
        response = Response(result[0].type_url, Version("v"), Nonce("1"), result)
        step = self.quarantine.answered(node, response, rejection, lambda: NOW)
        if step is not None:
            self._serve(step)

    def _serve(self, step: Step) -> None:
        self.cache.publish_changes(step.snapshots, step.members)


def test_proxy_that_rejects_a_version_is_served_the_one_it_accepted() -> None:
    """Another proxy of the same group is served the new version."""
    plane = Plane(_route("1"))
    plane.accept(ONE, _route("1"))
    plane.accept(OTHER, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"), said="bad regex")
    assert (plane.served(ONE), plane.served(OTHER)) == ({"r": "1"}, {"r": "2"})
    (rejected_resource,) = plane.quarantine.findings.rejected()
    assert rejected_resource == RejectedResource(
        ONE, ROUTE, ResourceName("r"), Version("2"), "bad regex", replaced=True
    )
    assert plane.quarantine.findings.counts() == {ROUTE: 1}


def test_each_rejected_listener_has_its_own_reason() -> None:
    """A port in use is a fault of the machine, but the other listener must be corrected."""
    bound, wrong = _resource(LISTENER, "bound", "1"), _resource(LISTENER, "wrong", "1")
    plane = Plane(bound, wrong, reason=lambda _, text: reason(text))
    busy = "bound: cannot bind '10.0.0.1:1': Address already in use"
    plane.reject(ONE, bound, wrong, said=f"Error adding/updating listener(s) {busy}\nwrong: malformed\n")
    result = {
        rejected_resource.name: (rejected_resource.reason, rejected_resource.message)
        for rejected_resource in plane.quarantine.findings.rejected()
    }
    assert result == {
        "bound": (Reason.ADDRESS_IN_USE, f"Error adding/updating listener(s) {busy}"),
        "wrong": (Reason.CONTENT, "Error adding/updating listener(s) wrong: malformed"),
    }


def test_empty_substitute_is_computed_only_without_a_good_version() -> None:
    """It is computed when the good version is rejected too."""
    plane = Plane(_route("1"))
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    assert (plane.served(ONE), plane.emptied) == ({"r": "1"}, [])
    plane.reject(ONE, _route("1"))
    assert (plane.served(ONE), plane.emptied) == ({"r": "empty"}, [(ROUTE, ResourceName("r"))])


def test_proxy_without_an_accepted_version_is_served_the_one_of_its_group() -> None:
    """A new instance may meet a bad version that older instances preceded."""
    plane = Plane(_route("1"))
    plane.accept(OTHER, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    assert plane.served(ONE) == {"r": "1"}


def test_version_accepted_by_one_proxy_is_not_good_for_a_proxy_that_rejects_it() -> None:
    """The group's earlier accepted version is remembered too, and is served instead."""
    plane = Plane(_route("1"))
    plane.accept(OTHER, _route("1"))
    plane.publish(_route("2"))
    plane.accept(OTHER, _route("2"))
    plane.reject(ONE, _route("2"))
    assert (plane.served(ONE), plane.served(OTHER)) == ({"r": "1"}, {"r": "2"})


def test_version_without_acknowledgements_falls_back_to_the_previous_version() -> None:
    """After a restart, clients are not sent what they hold, so they acknowledge nothing.

    The previous version is tried once.
    """
    plane = Plane(_route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    assert plane.served(ONE) == {"r": "1"}
    plane.reject(ONE, _route("1"))
    assert plane.served(ONE) == {"r": "empty"}, "and that one is tried once"


def test_route_without_a_good_version_is_empty_beside_its_neighbours() -> None:
    """Another route of the same snapshot is served unchanged."""
    plane = Plane(_route("1"), _route("1", "s"))
    plane.reject(ONE, _route("1"))
    assert plane.served(ONE) == {"r": "empty", "s": "1"}
    (rejected_resource,) = plane.quarantine.findings.rejected()
    assert not rejected_resource.replaced


def test_new_version_is_served_after_a_rejection() -> None:
    """The proxy decides if the new version is good, and its rejection of the old one is dropped."""
    plane = Plane(_route("1"))
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    plane.publish(_route("3"))
    assert plane.served(ONE) == {"r": "3"}
    assert plane.cache.group(ONE) == GROUP
    assert plane.quarantine.findings.rejected() == ()
    assert plane.cache.snapshots().keys() == {GROUP}


def test_change_of_another_resource_is_served_at_once() -> None:
    """Only the rejected resource is withheld."""
    plane = Plane(_route("1"), _route("1", "s"))
    plane.accept(ONE, _route("1"), _route("1", "s"))
    plane.publish(_route("2"), _route("1", "s"))
    plane.reject(ONE, _route("2"))
    plane.publish(_route("2"), _route("2", "s"), _resource(ENDPOINT, "e", "1"))
    assert plane.served(ONE) == {"r": "1", "s": "2"}
    assert plane.served(ONE, ENDPOINT) == {"e": "1"}


def test_removed_resource_is_not_served_after_its_rejection() -> None:
    """The service was deleted, so its last good route must not remain."""
    plane = Plane(_route("1"))
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    plane.publish(_resource(ENDPOINT, "e", "1"))
    assert plane.served(ONE) == {}
    assert plane.quarantine.findings.rejected() == ()


def test_old_route_keeps_its_cluster_after_the_group_dropped_the_cluster() -> None:
    """The cluster is kept in its last version, even if it is removed after the rejection."""
    before, after = _resource(CLUSTER, "old", "1"), _resource(CLUSTER, "old", "2")
    new = _resource(CLUSTER, "new", "1")
    old_route = _resource(ROUTE, "r", "1", (CLUSTER, ResourceName("old")))
    new_route = _resource(ROUTE, "r", "2", (CLUSTER, ResourceName("new")))
    plane = Plane(before, old_route)
    plane.accept(ONE, before)
    plane.accept(ONE, old_route)
    plane.publish(before, new, new_route)
    plane.reject(ONE, new_route)
    plane.publish(after, new, new_route)
    plane.accept(ONE, after)
    plane.publish(new, new_route)
    assert plane.served(ONE) == {"r": "1"}
    assert plane.served(ONE, CLUSTER) == {"new": "1", "old": "2"}
    assert plane.served(OTHER, CLUSTER) == {"new": "1"}


def test_rejection_without_names_leads_to_trials_until_the_bad_route_is_found() -> None:
    """A new client is sent many routes at once, and its rejection does not name the bad one."""
    names = "abcdefgh"
    routes = [_route("1", name) for name in names]
    plane = Plane(*routes)
    bad, rounds = "f", 0
    sent = dict.fromkeys(names, "1")
    plane.reject(ONE, *routes)
    assert set(plane.served(ONE).values()) == {"empty"}
    while sent != plane.served(ONE):
        served = plane.served(ONE)
        changed = [_route(served[name], name) for name in names if served[name] != sent[name]]
        if (bad, "1") in [(resource.name, resource.version) for resource in changed]:
            plane.reject(ONE, *changed)
            sent = {**sent, **{resource.name: "?" for resource in changed}}
        else:
            plane.accept(ONE, *changed)
            sent |= {resource.name: resource.version for resource in changed}
        rounds += 1
        assert rounds < 20
    assert plane.served(ONE) == {name: "empty" if name == bad else "1" for name in names}
    assert [rejected_resource.name for rejected_resource in plane.quarantine.findings.rejected()] == [bad]


def test_empty_substitute_is_not_suspected_beside_a_new_version() -> None:
    """Otherwise the substitute would be removed, and with it all resources that refer to it."""
    plane = Plane(_route("1"), _route("1", "s"))
    plane.reject(ONE, _route("1"))
    plane.publish(_route("1"), _route("2", "s"))
    plane.reject(ONE, _route("empty"), _route("2", "s"))
    assert plane.served(ONE) == {"r": "empty", "s": "1"}


def test_accepted_routes_are_not_suspected_beside_a_new_one() -> None:
    """A proxy that reconnects is sent many routes, of which only one is new to it."""
    routes = [_route("1", name) for name in "abc"]
    plane = Plane(*routes)
    plane.accept(ONE, *routes)
    plane.publish(*routes, _route("1", "d"))
    plane.reject(ONE, *routes, _route("1", "d"))
    assert plane.served(ONE) == {"a": "1", "b": "1", "c": "1", "d": "empty"}


def test_rejected_secret_is_replaced_only_by_a_good_one() -> None:
    """A secret that was never accepted stays, and its rejection is reported."""
    plane = Plane(_resource(SECRET, "s", "1"))
    plane.reject(OTHER, _resource(SECRET, "s", "1"))
    assert plane.served(OTHER, SECRET) == {"s": "1"}
    assert [rejected_resource.proxy for rejected_resource in plane.quarantine.findings.rejected()] == [OTHER]
    plane.accept(ONE, _resource(SECRET, "s", "1"))
    plane.publish(_resource(SECRET, "s", "2"))
    assert plane.quarantine.findings.rejected() == ()
    plane.reject(ONE, _resource(SECRET, "s", "2"))
    assert plane.served(ONE, SECRET) == {"s": "1"}


def test_proxies_with_the_same_fallback_share_one_snapshot() -> None:
    """The route of one proxy is its accepted version, that of the other its group's."""
    plane = Plane(_route("1"))
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    plane.reject(OTHER, _route("2"))
    assert plane.cache.snapshot(ONE) is plane.cache.snapshot(OTHER)
    assert plane.cache.group(ONE) == plane.cache.group(OTHER) != GROUP
    assert [rejected_resource.proxy for rejected_resource in plane.quarantine.findings.rejected()] == [ONE]


@pytest.mark.parametrize("stale", ["1", "9"])
def test_rejection_of_an_unserved_version_is_ignored(stale: str) -> None:
    """The rejection is late, or the client invents versions."""
    plane = Plane(_route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route(stale), _route("2", "unknown"))
    assert plane.served(ONE) == {"r": "2"}
    assert plane.quarantine.findings.rejected() == ()


def test_proxy_without_a_workload_is_ignored_and_not_remembered() -> None:
    """This holds before its workload is known and after the workload is removed."""
    plane = Plane(_route("1"))
    nobody = NodeKey("x.y.z")
    plane.accept(nobody, _route("1"))
    plane.reject(nobody, _route("1"))
    assert plane.size() == 0
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    plane.publish(_route("2"), members={ONE: None})
    assert plane.cache.snapshot(ONE) is None
    assert plane.quarantine.findings.counts() == {}
    assert plane.quarantine.findings.rejected() == ()
    assert plane.cache.snapshots().keys() == {GROUP}
    plane._serve(plane.quarantine.after(Step({GROUP: None}, {OTHER: None})))
    assert plane.size() == 0


def test_rejected_version_is_withheld_in_another_group_too() -> None:
    """A proxy that moves gets the other resources of its new group unchanged."""
    plane = Plane(_route("1"), _route("1", "s"))
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"), _route("1", "s"))
    plane.reject(ONE, _route("2"))
    other = GroupKey("other")
    step = Step({other: Snapshot.of((_route("2"), _route("2", "s")))}, {ONE: other})
    plane._serve(plane.quarantine.after(step))
    assert plane.served(ONE) == {"r": "1", "s": "2"}
    assert plane.cache.snapshots().keys() == {GROUP, other, plane.cache.group(ONE)}


def test_memory_for_a_client_that_rejects_and_accepts_anything_is_limited() -> None:
    """Names are added and removed all the time; another proxy of its group is unaffected."""
    sizes = []
    plane = Plane(_route("1", "n0"))
    for number in range(1, 200):
        now = tuple(_route(str(number), f"n{number + item}") for item in range(10))
        plane.publish(*now)
        plane.accept(ONE, *now[:5])
        plane.reject(ONE, *now[3:])
        plane.reject(ONE, *[_route(version, name) for name, version in plane.served(ONE).items()])
        plane.accept(ONE, *now)
        sizes.append((plane.size(), sum(plane.quarantine.findings.counts().values())))
        assert plane.served(OTHER) == {resource.name: resource.version for resource in now}
    assert max(size for size, _ in sizes) < 200
    assert max(count for _, count in sizes) <= 10
    assert len(plane.cache.snapshots()) <= 2


def test_served_snapshots_equal_those_in_the_cache() -> None:
    """The self-check compares `served` and `exclusions` with a computation from scratch."""
    plane = Plane(_route("1"))
    plane.accept(ONE, _route("1"))
    plane.publish(_route("2"))
    plane.reject(ONE, _route("2"))
    served = plane.quarantine.served()
    assert {node: served.snapshot(node) for node in (ONE, OTHER)} == {
        node: plane.cache.snapshot(node) for node in (ONE, OTHER)
    }
    own = plane.published.snapshot(ONE)
    assert own is not None
    excluded = plane.quarantine.exclusions()
    assert excluded.instead_of(ONE, own) == plane.cache.snapshot(ONE)
    assert excluded.instead_of(OTHER, own) is own
