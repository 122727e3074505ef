"""Changing some groups of a cache: what is told, what stays, what is refused."""

import pytest

from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import SECRET, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot

ONE, TWO = GroupKey("one"), GroupKey("two")
A, B, C = NodeKey("a"), NodeKey("b"), NodeKey("c")


def _snapshot(content: int) -> Snapshot:
    return Snapshot.of([Resource(SECRET, ResourceName("c"), Version(str(content)), b"")])


def _cache(woken: list[str]) -> SnapshotCache:
    cache = SnapshotCache()
    for node in (A, B, C):
        cache.watch(node, lambda node=node: woken.append(node))  # type: ignore[misc] # a loop's own variable
    cache.publish({ONE: _snapshot(1), TWO: _snapshot(2)}, {A: ONE, B: ONE, C: TWO})
    woken.clear()
    return cache


def test_only_the_nodes_of_changed_groups_are_woken() -> None:
    """An equal snapshot concerns nobody; another group's stays the same object."""
    woken: list[str] = []
    cache = _cache(woken)
    other = cache.snapshot(C)
    assert cache.publish_changes({ONE: _snapshot(3), TWO: _snapshot(2)}, {}) == 2
    assert sorted(woken) == ["a", "b"]
    assert cache.snapshot(C) is other


def test_nodes_move_and_leave() -> None:
    """Who moves is woken, and who is in no group any more: it has no snapshot, and does not count."""
    woken: list[str] = []
    cache = _cache(woken)
    assert cache.publish_changes({TWO: None}, {A: None, C: ONE}) == 1
    assert sorted(woken) == ["a", "c"]
    assert cache.snapshot(A) is None
    assert (cache.group(C), cache.members(ONE)) == (ONE, frozenset({B, C}))
    assert list(cache.snapshots()) == [ONE]


def test_what_would_leave_a_member_without_snapshot_is_refused() -> None:
    """Nothing has changed then."""
    woken: list[str] = []
    cache = _cache(woken)
    with pytest.raises(KeyError):
        cache.publish_changes({TWO: None}, {})
    with pytest.raises(KeyError):
        cache.publish_changes({ONE: _snapshot(9)}, {A: GroupKey("three")})
    assert woken == []
    assert cache.snapshot(A) == _snapshot(1)
    assert cache.members(TWO) == frozenset({C})


def test_the_same_as_publishing_all() -> None:
    """After changes, groups and members are what a whole publication would have made."""
    cache, whole = _cache([]), SnapshotCache()
    cache.publish_changes({ONE: None, GroupKey("three"): _snapshot(3)}, {A: TWO, B: GroupKey("three")})
    whole.publish(
        {TWO: _snapshot(2), GroupKey("three"): _snapshot(3)}, {A: TWO, B: GroupKey("three"), C: TWO}
    )
    assert [cache.snapshot(node) for node in (A, B, C)] == [whole.snapshot(node) for node in (A, B, C)]
    assert cache.snapshots() == whole.snapshots()
