"""Tests of a group's next snapshot: the last one makes it cheaper, but changes nothing in it."""

import weakref
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from meshwright.delivery.snapshots.consistency import InconsistentSnapshot, LastSnapshot, after, consistent
from xds.protocol.resources.resource import CLUSTER, LISTENER, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.resources import Resources
from xds.protocol.resources.snapshot import Snapshot


def _resource(kind: TypeUrl, name: int, version: int, needs: int | None = None) -> Resource:
    references = () if needs is None else ((CLUSTER, ResourceName(str(needs))),)
    return Resource(kind, ResourceName(str(name)), Version(str(version)), b"%d" % version, references)


POOL = [
    _resource(kind, name, version) for kind in (CLUSTER, LISTENER) for name in (0, 1, 2) for version in (0, 1)
]


@st.composite
def _histories(draw: st.DrawFn) -> list[tuple[Resource, ...]]:
    """Return the resources of several waves in any order; equal ones may be distinct objects."""
    waves = draw(st.lists(st.lists(st.sampled_from(POOL), max_size=6), min_size=2, max_size=6))
    result = []
    for wave in waves:
        named = {(resource.type_url, resource.name): resource for resource in wave}
        anew = draw(st.booleans())
        result.append(tuple(_again(resource) if anew else resource for resource in named.values()))
    return result


def _again(resource: Resource) -> Resource:
    return _resource(resource.type_url, int(resource.name), int(resource.version))


@given(_histories())
def test_snapshot_made_from_the_last_one_equals_one_from_scratch(waves: list[tuple[Resource, ...]]) -> None:
    """If no resource changed, the result is the last snapshot itself."""
    before = consistent(waves[0])
    last = LastSnapshot(waves[0], weakref.ref(before.parts[-1]))
    for old, new in pairwise(waves):
        snapshot = consistent(new, before, last=last)
        assert snapshot == Snapshot.of(new)
        assert (snapshot is before) == (set(old) == set(new))
        before, last = snapshot, LastSnapshot(new, weakref.ref(snapshot.parts[-1]))


def test_change_of_one_resource_needs_few_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred resources only the changed one is looked up in the last set."""
    many = [_resource(CLUSTER, number, 0) for number in range(100)]
    held = ResourceSet.of(many)
    last = LastSnapshot(tuple(many), weakref.ref(held))
    many[7] = _resource(CLUSTER, 7, 1)
    asked: list[TypeUrl] = []
    look = ResourceSet.resources

    def asking(self: ResourceSet, kind: TypeUrl) -> Resources:
        asked.append(kind)
        return look(self, kind)

    monkeypatch.setattr(ResourceSet, "resources", asking)
    made = after(held, tuple(many), last)
    assert made.changed_since(held) == {CLUSTER: {"7"}}
    assert len(asked) <= 4


def test_new_reference_to_a_missing_resource_is_detected() -> None:
    """The resource with the reference replaces one of the same name whose reference was valid."""
    before = consistent((_resource(CLUSTER, 0, 0), _resource(LISTENER, 0, 0, needs=0)))
    own = tuple(before.ordered(CLUSTER)) + tuple(before.ordered(LISTENER))
    last = LastSnapshot(own, weakref.ref(before.parts[-1]))
    with pytest.raises(InconsistentSnapshot, match="1"):
        consistent((own[0], _resource(LISTENER, 0, 1, needs=1)), before, last=last)
