"""Tests of shared resource sets: made batch by batch, equal to the union of all batches."""

import random

import pytest

from meshwright.delivery.snapshots.sets import SetBuilder
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.resources import SnapshotError

Batch = tuple[Resource, ...]


def _resource(kind: TypeUrl, name: str, version: int) -> Resource:
    return Resource(kind, ResourceName(name), Version(f"{version}"), f"{version}".encode())


def _batch(number: int, size: int, version: int) -> Batch:
    names = [f"{number}-{item}" for item in range(size)]
    return tuple(_resource(kind, name, version) for name in names for kind in (CLUSTER, ENDPOINT))


def _said(resource_set: ResourceSet) -> dict[str, list[tuple[str, bytes]]]:
    return {
        kind: [(name, resource.body) for name, resource in table.items()]
        for kind, table in resource_set.tables.items()
    }


@pytest.mark.parametrize("seed", range(20))
def test_set_equals_its_batches_after_any_earlier_sets(seed: int) -> None:
    """Random batches are added, removed and changed; the differences from earlier sets are right too."""
    dice = random.Random(seed)  # noqa: S311 - dice
    sets, held = SetBuilder(), list[ResourceSet]()
    batches = {number: _batch(number, dice.randint(0, 4), 0) for number in range(12)}
    for version in range(1, 30):
        for _ in range(dice.choice((1, 1, 2, 9))):
            batches[dice.randrange(15)] = _batch(dice.randrange(15), 0, 0)
            number = dice.randrange(15)
            batches[number] = _batch(number, dice.randint(0, 4), version)
        resource_set = sets.build_set(batches.values())
        assert _said(resource_set) == _said(
            ResourceSet.of(resource for batch in batches.values() for resource in batch)
        )
        for before in held[-3:]:
            anew = ResourceSet.of(
                resource for table in resource_set.tables.values() for resource in table.values()
            )
            assert resource_set.changed_since(before) == anew.changed_since(before)
        held = [*held[-3:], resource_set]


def test_change_of_one_batch_keeps_the_tables_of_other_types() -> None:
    """The set knows its difference from the last one. Equal new batches give the same set."""
    sets = SetBuilder()
    batches = [_batch(number, 4, 0) for number in range(8)]
    first = sets.build_set(batches)
    batches[3] = (*batches[3][:-1], _resource(ENDPOINT, "3-3", 1))
    second = sets.build_set(batches)
    assert {kind: set(names) for kind, names in second.changed_since(first).items()} == {ENDPOINT: {"3-3"}}
    assert second.resources(CLUSTER) is first.resources(CLUSTER)
    batches[5] = _batch(5, 4, 0)
    assert sets.build_set(batches) is second


def test_two_resources_of_one_name_are_an_error_in_any_batches() -> None:
    """The error is found although other batches are unchanged; a move between batches is valid."""
    sets = SetBuilder()
    batches = [_batch(number, 4, 0) for number in range(8)]
    held = sets.build_set(batches)
    for twice in ((*batches[2], *_batch(2, 1, 1)), (*batches[2], *_batch(5, 1, 1))):
        with pytest.raises(SnapshotError, match="are named"):
            sets.build_set([*batches[:2], twice, *batches[3:]])
    moved = [*batches[:2], (*batches[2], *batches[5]), (), *batches[3:5], *batches[6:]]
    assert _said(sets.build_set(moved)) == _said(held), "from one batch to another is none"
