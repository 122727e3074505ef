"""Tests of acknowledged resources: noted as a whole table where possible, with the same effect."""

import gc
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from meshwright.delivery.quarantine import acknowledged_resources as accepted
from meshwright.delivery.quarantine.acknowledged_resources import (
    OF_GROUP,
    OWN,
    Acknowledged,
    AcknowledgedResources,
    AcknowledgedVersions,
)
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import CLUSTER, SECRET, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resources import NO_RESOURCES, Resources
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Response

GROUP = GroupKey("group")
NODES = tuple(map(NodeKey, ("one", "two", "three")))


class Plane:
    """The acknowledged clusters of three proxies that are served the same."""

    def __init__(self) -> None:
        self.of: dict[NodeKey, Acknowledged] = {node: {} for node in NODES}
        self.accepted = AcknowledgedResources(self.of.__getitem__)

    def note(self, node: NodeKey, served: Snapshot, *names: str) -> None:
        """Acknowledge some of the served resources for a proxy."""
        self.accepted.note(node, GROUP, _response(served, *names), served)

    def good(self, node: NodeKey, name: str) -> list[str]:
        """Return the versions of a cluster that count as good for a proxy."""
        return [
            resource.version for resource in self.accepted.good(node, GROUP, (CLUSTER, ResourceName(name)))
        ]


def _cluster(name: str, version: str) -> Resource:
    return Resource(CLUSTER, ResourceName(name), Version(version), b"")


def _response(served: Snapshot, *names: str) -> Response:
    resources = tuple(served.resources(CLUSTER)[ResourceName(name)] for name in names)
    table = served.resources(CLUSTER) if resources == served.ordered(CLUSTER) else None
    return Response(CLUSTER, Version("v"), Nonce("1"), resources, table=table)


def _all_of(served: Snapshot, type_url: TypeUrl) -> Response:
    table = served.resources(type_url)
    return Response(type_url, table.version, Nonce("1"), table.ordered, table=table)


def _names(count: int) -> list[str]:
    return [f"cluster-{number:03}" for number in range(count)]


def test_acknowledged_table_is_shared_by_proxies_and_their_group() -> None:
    """A later change adds one named resource to the proxy that acknowledged it, and to no other proxy."""
    plane, names = Plane(), _names(200)
    served = Snapshot.of(_cluster(name, "1") for name in names)
    for node in NODES:
        plane.note(node, served, *names)
    tables = {id(held[CLUSTER].whole) for held in (*plane.of.values(), plane.accepted._by_group[GROUP])}
    assert tables == {id(served.resources(CLUSTER))}
    later = served.changed([_cluster("cluster-007", "2")])
    plane.note(NODES[0], later, "cluster-007")
    assert [len(held[CLUSTER].named) for held in plane.of.values()] == [1, 0, 0]
    assert plane.good(NODES[0], "cluster-007") == ["2", "2", "1"]
    assert plane.good(NODES[1], "cluster-007") == ["1", "2", "1"]
    assert plane.good(NODES[1], "cluster-008") == ["1", "1"]


def test_small_table_is_shared_after_any_acknowledgement() -> None:
    """Two proxies acknowledge a small table in different responses, and then a change alone.

    No resource is noted by name afterwards.
    """
    plane, names = Plane(), _names(5)
    served = Snapshot.of(_cluster(name, "1") for name in names)
    plane.note(NODES[0], served, *names)
    plane.note(NODES[1], served, *names[:2])
    plane.note(NODES[1], served, *names[2:])
    later = served.changed([_cluster("cluster-003", "2")])
    for node in NODES[:2]:
        plane.note(node, later, "cluster-003")
    held = [plane.of[node][CLUSTER] for node in NODES[:2]]
    assert [acknowledged_versions.whole for acknowledged_versions in held] == [later.resources(CLUSTER)] * 2
    assert all(
        acknowledged_versions.whole is later.resources(CLUSTER) and not acknowledged_versions.named
        for acknowledged_versions in held
    )
    assert plane.good(NODES[1], "cluster-003") == ["2", "2", "1"]


def test_resource_with_another_recipe_needs_no_acknowledgement() -> None:
    """Its content is not sent again, so the next answer acknowledges the whole served table."""
    plane, names = Plane(), _names(5)
    served = Snapshot.of(_cluster(name, "1") for name in names)
    plane.note(NODES[0], served, *names)
    anew = served.changed([replace(_cluster("cluster-001", "1"), recipe="another")])
    plane.accepted.replaced(GROUP, served, anew)
    later = anew.changed([_cluster("cluster-003", "2")])
    plane.note(NODES[0], later, "cluster-003")
    held = plane.of[NODES[0]][CLUSTER]
    assert held.whole is later.resources(CLUSTER)
    assert not held.named
    assert {resource.recipe for resource in held.get(ResourceName("cluster-001"))} == {"another"}


def test_many_single_changes_become_a_table_again() -> None:
    """Endpoints change one by one while sidecars connect; few named resources are kept beside the table."""
    plane, names = Plane(), _names(300)
    served = Snapshot.of(_cluster(item, "1") for item in names)
    plane.note(NODES[0], served, *names)
    for name in names:
        before, served = served, served.changed([_cluster(name, "2")])
        plane.accepted.replaced(GROUP, before, served)
        plane.note(NODES[0], served, name)
    assert len(plane.of[NODES[0]][CLUSTER].named) < accepted.OFTEN
    assert plane.good(NODES[1], "cluster-007") == ["2", "1"]


def test_proxies_with_the_same_acknowledgements_share_one_object() -> None:
    """A proxy that connects later with the whole table shares the object too."""
    plane, names = Plane(), _names(300)
    groups = {node: GroupKey(f"group of {node}") for node in NODES}
    served = Snapshot.of(_cluster(name, "1") for name in names)

    def noted() -> tuple[int, int]:
        held = [plane.of[node].get(CLUSTER) for node in NODES]
        of_groups = [plane.accepted._by_group[group].get(CLUSTER) for group in groups.values()]
        return len(set(map(id, held))), len(set(map(id, of_groups)))

    for node in NODES[:2]:
        plane.accepted.note(node, groups[node], _response(served, *names), served)
    for turn in range(4):
        some = names[turn : turn + 100]
        before, served = served, served.changed([_cluster(item, f"{turn}+") for item in some])
        response, whole = _response(served, *some), _response(served, *names)
        for node in NODES:
            plane.accepted.replaced(groups[node], before, served)
            is_new = node == NODES[2] and turn == 0
            plane.accepted.note(node, groups[node], whole if is_new else response, served)
        assert noted() == (1, 2), "of the third group nothing was noted when the first were replaced"


def test_table_that_was_replaced_meanwhile_is_acknowledged_as_a_whole() -> None:
    """Endpoints often change while sidecars connect, and proxies hold the table that they were sent."""
    plane, names = Plane(), _names(100)
    served = Snapshot.of(_cluster(name, "1") for name in names)
    later = served.changed([_cluster("cluster-007", "2")])
    for node in NODES[:2]:
        plane.accepted.note(node, GROUP, _response(served, *names), later)
    assert plane.of[NODES[0]][CLUSTER] is plane.of[NODES[1]][CLUSTER]
    assert not plane.of[NODES[0]][CLUSTER].named
    assert plane.good(NODES[0], "cluster-007") == ["1", "1"]
    plane.note(NODES[0], later, "cluster-007")
    assert plane.good(NODES[0], "cluster-007") == ["2", "2", "1"]


def test_secret_is_not_shared_with_a_proxy_that_has_not_acknowledged_it() -> None:
    """A proxy with the first key must not refer to the second key of another proxy."""
    plane = Plane()
    first, second = (
        Snapshot.of([Resource(SECRET, ResourceName("key"), Version(item), b"", secret=True)]) for item in "12"
    )
    table = second.resources(SECRET)
    for node in NODES[:2]:
        plane.accepted.note(node, GROUP, _all_of(first, SECRET), first)
    stuck = plane.of[NODES[1]][SECRET]
    plane.accepted.replaced(GROUP, first, second)
    plane.accepted.note(NODES[0], GROUP, _all_of(second, SECRET), second)
    assert plane.of[NODES[0]][SECRET].whole is table
    assert stuck is not plane.of[NODES[0]][SECRET]
    assert stuck.known(table.ordered, table) is None
    assert not any(
        held is table for referent in gc.get_referents(stuck) for held in gc.get_referents(referent)
    )


@pytest.mark.parametrize(("few", "often"), [(0, 3), (0, 10**6), (10, 10**6), (10**6, 10**6)])
@pytest.mark.parametrize("seed", range(20))
def test_notes_as_a_table_and_by_name_have_the_same_effect(
    few: int, often: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any history the same versions count as good."""
    monkeypatch.setattr(accepted, "FEW", few)
    monkeypatch.setattr(accepted, "OFTEN", often)
    result = _history(random.Random(seed))  # noqa: S311 - dice
    monkeypatch.setattr(accepted, "_NOTHING", {count: ByName(count) for count in (OWN, OF_GROUP)})
    assert result == _history(random.Random(seed))  # noqa: S311 - dice


class ByName(AcknowledgedVersions):
    """Acknowledged versions that are noted by name only, and never shared."""

    __slots__ = ()

    def known(self, resources: tuple[Resource, ...], served: Resources) -> None:
        """Return None: nothing of other proxies is known."""
        del resources, served

    def after(self, response: Response, served: Resources) -> AcknowledgedVersions:
        """Return the versions after acknowledged resources."""
        del served
        named = dict(self.named)
        for resource in response.resources:
            known = self.get(resource.name)
            if not known or known[0].version != resource.version:
                older = (old for old in known if old.version != resource.version)
                named[resource.name] = (resource, *older)[: self.count]
        return ByName(self.count, NO_RESOURCES, named)

    def put(self, named: Mapping[ResourceName, tuple[Resource, ...]]) -> AcknowledgedVersions:
        """Return the versions with other named ones."""
        return ByName(self.count, NO_RESOURCES, {**self.named, **named})


def _history(dice: random.Random) -> list[object]:
    plane, names = Plane(), _names(12)
    served = Snapshot.of(_cluster(item, "0") for item in names[:9])
    seen: list[object] = []
    for step in range(25):
        before = served
        put = [_cluster(item, f"{step}") for item in dice.sample(names, 2)]
        gone = [(CLUSTER, ResourceName(item)) for item in dice.sample(names, 1)]
        served = served.changed(put, gone)
        if dice.random() < 0.5:
            plane.accepted.replaced(GROUP, before, served)
        there = list(served.resources(CLUSTER))
        response = _response(served, *(there if dice.random() < 0.4 else sorted(dice.sample(there, 2))))
        for node in (dice.choice(NODES),) if dice.random() < 0.5 else NODES:
            plane.accepted.note(node, GROUP, response, served)
        if dice.random() < 0.2:
            plane.accepted.rejected(node, served.resources(CLUSTER)[there[0]])
        seen.append([plane.good(node_key, name) for node_key in NODES for name in names])
    return seen
