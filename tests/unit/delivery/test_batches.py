"""Tests of a step's parts: together they are the step, and no proxy sees a half-applied change."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.delivery.batches import parts
from meshwright.delivery.snapshots.published_snapshots import Failure, PublishedSnapshots, Step
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.layers import Layers
from xds.protocol.resources.resource import CLUSTER, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot

GROUPS = [GroupKey(f"group {number}") for number in range(8)]
NODES = [NodeKey(f"node {number}") for number in range(12)]

Parting = Callable[[Step, PublishedSnapshots, int], Iterator[Step]]


def _snapshot(version: object) -> Snapshot:
    return Snapshot.of((Resource(CLUSTER, ResourceName("c"), Version(str(version)), b""),))


def _published(dice: random.Random, era: str) -> PublishedSnapshots:
    """Return groups with some proxies each; some proxies are in no group."""
    members = {node: dice.choice(GROUPS) for node in NODES if dice.random() < 0.8}
    there = sorted(set(members.values()))
    return PublishedSnapshots(
        Layers({group: _snapshot(f"{era} {group}") for group in there}), Layers(members)
    )


def _step(dice: random.Random, before: PublishedSnapshots) -> Step:
    """Return a step to other groups, some of which are unchanged."""
    after = _published(dice, "after")
    if dice.random() < 0.5:  # no proxy moves
        changed = {group: _snapshot(f"after {group}") for group in before.snapshots}
        after = PublishedSnapshots(Layers(changed), before.members)
    kept = {group for group in after.snapshots if group in before.snapshots and dice.random() < 0.3}
    snapshots = {
        group: after.snapshots.get(group) for group in sorted({*before.snapshots, *after.snapshots} - kept)
    }
    members = {
        node: after.members.get(node) for node in NODES if before.members.get(node) != after.members.get(node)
    }
    failed = {GROUPS[0]: Failure(GROUPS[0], "no", 1, 1)} if dice.random() < 0.3 else {}
    absent = frozenset(node for node, group in members.items() if group is None and dice.random() < 0.5)
    return Step(snapshots, members, failed, absent)


def _halves(seed: int, parting: Parting) -> list[str]:
    """Return the proxies that see neither the old nor the new snapshot between parts of a random step."""
    dice = random.Random(seed)  # noqa: S311 - dice
    before = _published(dice, "before")
    step = _step(dice, before)
    after = step.after(before)
    cache = SnapshotCache()
    cache.publish(before.snapshots, before.members)
    result = []
    for part in parting(step, before, dice.randint(1, 3)):
        cache.publish_changes(part.snapshots, part.members)
        result += [
            f"{node} after {sorted(part.snapshots)}"
            for node in NODES
            if cache.snapshot(node) not in (before.snapshot(node), after.snapshot(node))
        ]
    result += [f"{node} in the end" for node in NODES if cache.snapshot(node) != after.snapshot(node)]
    return result


def _heedless(step: Step, before: PublishedSnapshots, size: int) -> Iterator[Step]:
    """Split a step by its groups alone: first the groups that stay or are new, last removals and moves."""
    del before
    here = [group for group, snapshot in step.snapshots.items() if snapshot is not None]
    for first in range(0, len(here), size):
        yield Step({group: step.snapshots[group] for group in here[first : first + size]})
    yield Step({group: None for group in step.snapshots if group not in here}, step.members)


@given(st.integers(0, 2**32))
def test_proxy_has_its_old_or_new_snapshot_between_two_parts(seed: int) -> None:
    """New, removed and changed groups, and proxies that move between them, cause no mixed state."""
    assert _halves(seed, parts) == []


def test_split_by_groups_alone_is_detected() -> None:
    """Negative control: a split that ignores moving proxies serves some proxy a foreign snapshot."""
    assert any(_halves(seed, _heedless) for seed in range(20))


@given(st.integers(0, 2**32))
def test_parts_together_are_the_step(seed: int) -> None:
    """Each change of a group is in one part, and a step below the size stays whole.

    A part has more groups than the size only if it moves proxies, which must change together.
    """
    dice = random.Random(seed)  # noqa: S311 - dice
    before = _published(dice, "before")
    step = _step(dice, before)
    steps = list(parts(step, before, 2))
    assert {k: v for part in steps for k, v in part.snapshots.items()} == step.snapshots
    assert {k: v for part in steps for k, v in part.members.items()} == step.members
    assert sum(len(part.snapshots) for part in steps) == len(step.snapshots)
    assert {k: v for part in steps for k, v in part.failed.items()} == step.failed
    assert {node for part in steps for node in part.absent} == step.absent
    assert all(part.absent <= part.members.keys() for part in steps)
    for part in steps:
        assert len(part.snapshots) <= 2 or part.members
    assert list(parts(step, before, 100)) == [step]


@pytest.mark.parametrize("size", [1, 3])
def test_groups_without_moving_proxies_are_split_by_size(size: int) -> None:
    """A change of 8 groups is published in parts of at most `size` groups, e.g. 3, 3 and 2."""
    step = Step({group: _snapshot("after") for group in GROUPS})
    steps = list(
        parts(step, PublishedSnapshots(Layers({group: _snapshot("before") for group in GROUPS})), size)
    )
    assert [len(part.snapshots) for part in steps] == {1: [1] * 8, 3: [3, 3, 2]}[size]
