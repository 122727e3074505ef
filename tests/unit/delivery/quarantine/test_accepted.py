"""What is noted of acknowledged resources: as a whole where that is what is served, to the same effect."""

import random

import pytest

from delivery.quarantine import accepted
from delivery.quarantine.accepted import Accepted, Acknowledged, Noted, Same
from xds.cache import GroupKey, NodeKey
from xds.protocol.resource import CLUSTER, SECRET, Resource, ResourceName, Version
from xds.protocol.resources import Resources
from xds.protocol.snapshot import Snapshot
from xds.protocol.wire import Nonce, Response

GROUP = GroupKey("group")
NODES = tuple(map(NodeKey, ("one", "two", "three")))


class Plane:
    """Knows what proxies acknowledge of clusters, and serves all of them the same."""

    def __init__(self) -> None:
        self.of: dict[NodeKey, Acknowledged] = {each: {} for each in NODES}
        self.accepted = Accepted(self.of.__getitem__)

    def note(self, node: NodeKey, served: Snapshot, *names: str, group: GroupKey = GROUP) -> None:
        """Have a proxy acknowledge some resources of what is served."""
        found = tuple(served.resources(CLUSTER)[ResourceName(name)] for name in names)
        self.accepted.note(node, group, Response(CLUSTER, Version("v"), Nonce("1"), found), served)

    def good(self, node: NodeKey, name: str) -> list[str]:
        """Return the versions of a cluster that count as good for a proxy."""
        return [each.version for each in self.accepted.good(node, GROUP, (CLUSTER, ResourceName(name)))]


def _cluster(name: str, version: str) -> Resource:
    return Resource(CLUSTER, ResourceName(name), Version(version), b"")


def _names(count: int) -> list[str]:
    return [f"cluster-{number:03}" for number in range(count)]


def test_all_that_is_served_is_held_once_for_all() -> None:
    """Three proxies and their group hold one table; a change adds what changed to each, and no more."""
    plane, names = Plane(), _names(200)
    served = Snapshot.of(_cluster(each, "1") for each in names)
    for node in NODES:
        plane.note(node, served, *names)
    tables = {id(held[CLUSTER]._whole) for held in (*plane.of.values(), plane.accepted._by_group[GROUP])}
    assert tables == {id(served.resources(CLUSTER))}
    later = served.changed([_cluster("cluster-007", "2")])
    plane.note(NODES[0], later, "cluster-007")
    assert [len(held[CLUSTER]._named) for held in plane.of.values()] == [1, 0, 0]
    assert plane.good(NODES[0], "cluster-007") == ["2", "2", "1"]
    assert plane.good(NODES[1], "cluster-007") == ["1", "2", "1"]
    assert plane.good(NODES[1], "cluster-008") == ["1", "1"]


def test_few_are_held_once_for_all_after_any_answer() -> None:
    """Three proxies have a small table, and then its change, which came alone: nothing is noted by name."""
    plane, names = Plane(), _names(5)
    served = Snapshot.of(_cluster(each, "1") for each in names)
    plane.note(NODES[0], served, *names)
    plane.note(NODES[1], served, *names[:2])
    plane.note(NODES[1], served, *names[2:])
    later = served.changed([_cluster("cluster-003", "2")])
    for node in NODES[:2]:
        plane.note(node, later, "cluster-003")
    held = [plane.of[node][CLUSTER] for node in NODES[:2]]
    assert [each._whole for each in held] == [later.resources(CLUSTER)] * 2
    assert all(each._whole is later.resources(CLUSTER) and not each._named for each in held)
    assert plane.good(NODES[1], "cluster-003") == ["2", "2", "1"]


def test_many_that_change_one_by_one_are_the_table_again() -> None:
    """As endpoints do while sidecars connect: beside the table a proxy has few, whatever there is.

    The versions before, which its group keeps, are other groups' as well.
    """
    plane, names = Plane(), _names(300)
    served = Snapshot.of(_cluster(each, "1") for each in names)
    groups = (GROUP, GroupKey("other"))
    for group in groups:
        plane.note(NODES[0], served, *names, group=group)
    for name in names:
        before, served = served, served.changed([_cluster(name, "2")])
        for group in groups:
            plane.accepted.replaced(group, before, served)
            plane.note(NODES[0], served, name, group=group)
    assert len(plane.of[NODES[0]][CLUSTER]._named) < accepted.OFTEN
    noted = [plane.accepted._by_group[group][CLUSTER] for group in groups]
    assert all(noted[0].get(ResourceName(each)) is noted[1].get(ResourceName(each)) for each in names)
    assert plane.good(NODES[1], "cluster-007") == ["2", "1"]


@pytest.mark.parametrize(("few", "often"), [(0, 3), (0, 10**6), (10, 10**6), (10**6, 10**6)])
@pytest.mark.parametrize("seed", range(20))
def test_as_a_whole_or_by_name_is_the_same(
    few: int, often: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any history the same versions count as good, and the same are accepted."""
    monkeypatch.setattr(accepted, "FEW", few)
    monkeypatch.setattr(accepted, "OFTEN", often)
    found = _history(random.Random(seed))  # noqa: S311 - dice
    monkeypatch.setattr(accepted, "Noted", ByName)
    assert found == _history(random.Random(seed))  # noqa: S311 - dice


class ByName(Noted):
    """Notes each resource by its name, whatever is served."""

    def take(self, resources: tuple[Resource, ...], served: Resources, count: int) -> None:
        """Take acknowledged resources."""
        del served
        for each in resources:
            known = self.get(each.name)
            if not known or known[0].version != each.version:
                older = (old for old in known if old.version != each.version)
                self.put(each.name, (each, *older)[:count])


def _history(dice: random.Random) -> list[object]:
    plane, names = Plane(), _names(12)
    served = Snapshot.of(_cluster(each, "0") for each in names[:9])
    seen: list[object] = []
    for step in range(25):
        before = served
        put = [_cluster(each, f"{step}") for each in dice.sample(names, 2)]
        gone = [(CLUSTER, ResourceName(each)) for each in dice.sample(names, 1)]
        served = served.changed(put, gone)
        if dice.random() < 0.5:
            plane.accepted.replaced(GROUP, before, served)
        there = list(served.resources(CLUSTER))
        node = dice.choice(NODES)
        plane.note(node, served, *(there if dice.random() < 0.4 else dice.sample(there, 2)))
        if dice.random() < 0.2:
            plane.accepted.rejected(node, served.resources(CLUSTER)[there[0]])
        seen.append([plane.good(each, name) for each in NODES for name in names])
    return seen


def test_who_acknowledges_what_others_have_has_their_tuple() -> None:
    """Of the same version after the same one; but no key is held longer than by the group that it is of."""
    same, old, new = Same(), _cluster("a", "1"), _cluster("a", "2")
    assert same(new) == (new,)
    assert same(new, old) == (new, old)
    assert same(new) is same(new)
    assert same(new, old) is same(new, old)
    key = Resource(SECRET, ResourceName("service-cert"), Version("1"), b"key", secret=True)
    assert same(key) == (key,)
    assert same(key) is not same(key)
