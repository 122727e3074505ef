"""Tests of partial changes to a snapshot cache: watchers, members, refusals."""

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


def test_only_nodes_of_changed_groups_are_woken() -> None:
    """An equal snapshot wakes no node, and its group keeps the same snapshot object."""
    woken: list[str] = []
    cache = _cache(woken)
    other = cache.snapshot(C)
    assert cache.publish_changes({ONE: _snapshot(3), TWO: _snapshot(2)}, {}) == 2
    assert sorted(woken) == ["a", "b"]
    assert cache.snapshot(C) is other


def test_moved_and_removed_nodes_are_woken() -> None:
    """A node without a group is woken and has no snapshot; only the moved node counts as changed."""
    woken: list[str] = []
    cache = _cache(woken)
    assert cache.publish_changes({TWO: None}, {A: None, C: ONE}) == 1
    assert sorted(woken) == ["a", "c"]
    assert cache.snapshot(A) is None
    assert (cache.group(C), cache.members(ONE)) == (ONE, frozenset({B, C}))
    assert list(cache.snapshots()) == [ONE]


def test_change_that_leaves_a_member_without_snapshot_is_refused() -> None:
    """The change raises KeyError, and the cache remains as it was."""
    woken: list[str] = []
    cache = _cache(woken)
    with pytest.raises(KeyError):
        cache.publish_changes({TWO: None}, {})
    with pytest.raises(KeyError):
        cache.publish_changes({ONE: _snapshot(9)}, {A: GroupKey("three")})
    assert woken == []
    assert cache.snapshot(A) == _snapshot(1)
    assert cache.members(TWO) == frozenset({C})


def test_partial_changes_equal_a_complete_publication() -> None:
    """After partial changes, snapshots and groups are the same as after one complete publication."""
    cache, whole = _cache([]), SnapshotCache()
    cache.publish_changes({ONE: None, GroupKey("three"): _snapshot(3)}, {A: TWO, B: GroupKey("three")})
    whole.publish(
        {TWO: _snapshot(2), GroupKey("three"): _snapshot(3)}, {A: TWO, B: GroupKey("three"), C: TWO}
    )
    assert [cache.snapshot(node) for node in (A, B, C)] == [whole.snapshot(node) for node in (A, B, C)]
    assert cache.snapshots() == whole.snapshots()
