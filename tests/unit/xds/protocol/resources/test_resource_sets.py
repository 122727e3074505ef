"""Tests of snapshots joined from shared parts: equal to plain snapshots, at the cost of the differences."""

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.hypothesis_profiles import examples
from tests.unit.xds.protocol.counted_lookups import counted_looks
from xds.protocol.resources import snapshot
from xds.protocol.resources.layers import FLAT, Layers
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    SECRET,
    Reference,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
    is_seen_otherwise,
)
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.resources import SnapshotError
from xds.protocol.resources.snapshot import Snapshot

Make = Callable[..., Resource]
Content = Mapping[Reference, Resource]

TYPES = (CLUSTER, ENDPOINT)
SECRETS = ("own-a", "own-b")


def _resource(type_url: TypeUrl, name: str, content: int, *needs: Reference) -> Resource:
    return Resource(
        type_url,
        ResourceName(name),
        Version(str(content)),
        b"",
        tuple(sorted(needs)),
        on_demand=content == 3,
        ttl_seconds=5.0 if content == 4 else None,
    )


def _cluster(number: int, content: int = 0) -> Resource:
    name = ResourceName(f"service-{number:04}")
    return _resource(CLUSTER, name, content, (ENDPOINT, name), (SECRET, ResourceName("own-a")))


def _endpoints(number: int, content: int = 0) -> Resource:
    return _resource(ENDPOINT, f"service-{number:04}", content)


def _everyone(count: int) -> ResourceSet:
    return ResourceSet.of(make(number) for number in range(count) for make in (_cluster, _endpoints))


@st.composite
def _resources(draw: st.DrawFn, prefix: str = "service") -> Resource:
    needs = draw(st.sets(st.tuples(st.sampled_from(TYPES), st.integers(0, 90)), max_size=2))
    return _resource(
        draw(st.sampled_from(TYPES)),
        f"{prefix}-{draw(st.integers(0, 90)):04}",
        draw(st.integers(0, 5)),
        *((type_url, ResourceName(f"service-{number:04}")) for type_url, number in needs),
    )


_CHANGES = st.lists(
    st.tuples(st.lists(_resources(), max_size=4), st.lists(_resources(), max_size=3)), max_size=5
)


@settings(max_examples=examples(8, fresh=160))
@given(_CHANGES, _CHANGES, st.integers(0, 80))
def test_snapshot_of_parts_equals_a_snapshot_of_the_same_resources(
    one: list[tuple[list[Resource], list[Resource]]],
    other: list[tuple[list[Resource], list[Resource]]],
    count: int,
) -> None:
    """Names, order, versions, missing references and steps agree after any changes of each part."""
    shared, before = _everyone(count), None
    contents = {
        (resource.type_url, resource.name): resource
        for t in shared.tables.values()
        for resource in t.values()
    }
    for turn in range(max(len(one), len(other))):
        put, removed = one[turn] if turn < len(one) else ([], [])
        own, _ = other[turn] if turn < len(other) else ([], [])
        gone = [(resource.type_url, resource.name) for resource in removed]
        for key in gone:
            contents.pop(key, None)
        contents |= {(resource.type_url, resource.name): resource for resource in put}
        shared = shared.changed(put, gone)
        beside = [resource for resource in own if (resource.type_url, resource.name) not in contents]
        mine = ResourceSet.of({(resource.type_url, resource.name): resource for resource in beside}.values())
        joined = Snapshot.joined((shared, mine))
        plain = Snapshot.of(
            {**contents, **{(resource.type_url, resource.name): resource for resource in beside}}.values()
        )
        content = {
            (resource.type_url, resource.name): resource for t in TYPES for resource in plain.ordered(t)
        }
        _agree(joined, plain)
        assert [(item[0].name, *item[1:]) for item in joined.missing()] == _missing(content)
        if before is not None:
            assert (
                joined.changed_since(before[0]) == plain.changed_since(before[1]) == _step(before[2], content)
            )
            assert joined.changed_since(before[1]) == plain.changed_since(before[0])
        before = joined, plain, content


def _missing(content: Content) -> list[tuple[str, TypeUrl, ResourceName]]:
    needs = [(key[0], resource.name, *to) for key, resource in content.items() for to in resource.references]
    return [need[1:] for need in sorted(needs) if need[2:] not in content]


def _step(before: Content, after: Content) -> dict[TypeUrl, set[ResourceName]]:
    result: dict[TypeUrl, set[ResourceName]] = {}
    for type_url, name in before.keys() | after.keys():
        if is_seen_otherwise(before.get((type_url, name)), after.get((type_url, name))):
            result.setdefault(type_url, set()).add(name)
    return result


def _agree(joined: Snapshot, plain: Snapshot) -> None:
    assert joined == plain
    assert joined.types() == plain.types()
    assert joined.missing() == plain.missing()
    assert joined.shortest_ttl == plain.shortest_ttl
    for type_url in TYPES:
        assert joined.version(type_url) == plain.version(type_url)
        assert list(joined.resources(type_url)) == sorted(plain.resources(type_url))
        assert joined.ordered(type_url) == plain.ordered(type_url)
        assert joined.visible(type_url) == plain.visible(type_url)
        assert joined.living(type_url) == plain.living(type_url)
        assert dict(joined.versions(type_url)) == {
            resource.name: resource.version for resource in plain.ordered(type_url)
        }
        assert joined.on_demand(type_url) == plain.on_demand(type_url)
        assert len(joined.resources(type_url)) == len(plain.ordered(type_url))


@given(
    st.lists(st.dictionaries(st.integers(0, 300), st.none() | st.integers(1, 9), max_size=30), max_size=12)
)
def test_layers_equal_a_dictionary_after_any_changes(changes: list[dict[int, int | None]]) -> None:
    """This remains true however often the upper layer has become a new base."""
    model = dict.fromkeys(range(0, 300, 2), 1)
    layers: Layers[int, int] = Layers(dict(model))
    for change in changes:
        layers = layers.changed(change)
        model = {k: v for k, v in {**model, **change}.items() if v is not None}
        assert list(layers.items()) == sorted(model.items())
        assert len(layers) == len(model)
        assert all((key in layers) == (key in model) for key in range(300))
        assert all(layers.get(key) == model.get(key) for key in range(300))


def test_cost_of_a_change_does_not_grow_with_the_number_of_resources() -> None:
    """A change of one cluster needs as many lookups and hashes among 1000 clusters as among 100."""
    counted = {}
    for count in (100, 1000):
        everyone = _everyone(count)
        own = [ResourceSet.of([_resource(SECRET, "own-a", n)]) for n in range(20)]
        before = [Snapshot.joined((everyone, mine)) for mine in own]
        versions = [item.version(CLUSTER) for item in before]
        held = everyone.resources(CLUSTER).versions
        assert not any(item.missing() for item in before)
        with counted_looks() as looks:
            changed = everyone.changed([_cluster(7, 1)])
            after = [Snapshot.joined((changed, mine)) for mine in own]
            steps = [new.changed_since(old) for new, old in zip(after, before, strict=True)]
            assert not any(item.missing() for item in after)
            assert versions != [item.version(CLUSTER) for item in after]
        counted[count] = looks.count
        assert all(step == {CLUSTER: {"service-0007"}} for step in steps)
        assert all(step[CLUSTER] is steps[0][CLUSTER] for step in steps)
        assert after[0].resources(ENDPOINT) is before[0].resources(ENDPOINT)
        # Unchanged resources and their versions are not copied.
        assert changed.resources(CLUSTER).base is everyone.resources(CLUSTER).base
        assert changed.resources(CLUSTER).versions.base is held.base

    assert counted[1000] == counted[100]


def test_large_part_is_shared_by_all_snapshots_that_contain_it() -> None:
    """A snapshot stores only its own resources.

    Resources and versions of the shared part are the part's objects.
    """
    everyone = _everyone(4 * FLAT)
    snapshots = [Snapshot.joined((everyone, ResourceSet.of([_cluster(9000 + n)]))) for n in range(3)]

    for item in snapshots:
        assert item.resources(CLUSTER).base is everyone.resources(CLUSTER)
        assert item.versions(CLUSTER).base is everyone.resources(CLUSTER).versions
        assert item.resources(ENDPOINT) is everyone.resources(ENDPOINT)


@pytest.mark.parametrize("count", [1, 4 * FLAT])
def test_same_resource_in_several_parts_counts_once(count: int) -> None:
    """Another resource of the same name is refused, because a snapshot has one resource for each name."""
    everyone, again = _everyone(count), ResourceSet.of([_cluster(0), _resource(SECRET, "own-a", 0)])
    plain = Snapshot.joined((everyone, ResourceSet.of([_resource(SECRET, "own-a", 0)])))

    assert Snapshot.joined((everyone, again)) == plain
    assert Snapshot.joined((everyone, again, again)).version(CLUSTER) == plain.version(CLUSTER)
    assert Snapshot.joined((again, everyone)).missing() == ()
    with pytest.raises(SnapshotError, match="'service-0000'"):
        Snapshot.joined((everyone, ResourceSet.of([_cluster(0, 1)])))


@given(_CHANGES, st.sets(st.integers(0, 20)), st.integers(0, 20))
def test_missing_references_after_a_change_equal_those_of_a_complete_search(
    changes: list[tuple[list[Resource], list[Resource]]], own: set[int], count: int
) -> None:
    """The search in the differences agrees with a new snapshot, whatever the parts were before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "FLAT", -1)  # so that few resources count as many
        shared = _everyone(count)
        mine = ResourceSet.of([_resource(SECRET, "own-a", 0), *map(_endpoints, own - set(range(count)))])
        before = Snapshot.joined((shared, mine))
        for put, removed in changes:
            assert before.missing() == Snapshot.of(_every(before)).missing()
            gone = [(resource.type_url, resource.name) for resource in removed]
            part = shared.changed(
                [resource for resource in put if resource.name not in mine.resources(resource.type_url)], gone
            )
            other = mine.changed((), gone)
            after = Snapshot.joined((part, other), before)
            assert after.missing() == Snapshot.of(_every(after)).missing()
            if after.is_consistent:
                before, shared, mine = after, part, other


@given(_CHANGES, st.integers(1, 20), st.booleans(), st.booleans())
def test_snapshot_with_a_replaced_part_equals_a_complete_snapshot(
    changes: list[tuple[list[Resource], list[Resource]]], count: int, divided: bool, alone: bool
) -> None:
    """Missing references and steps agree, whether a change keeps all references or not."""
    secret = _resource(SECRET, "own-a", 0)
    own = () if alone else (ResourceSet.of([secret, *([_resource(CLUSTER, "own", 1)] if divided else [])]),)
    shared = _everyone(count).changed([secret] if alone else [])
    before = Snapshot.joined((*own, shared))
    for put, removed in changes:
        assert before.missing() == Snapshot.of(_every(before)).missing()
        there = [old for resource in put if (old := shared.resources(resource.type_url).get(resource.name))]
        there = there or [*shared.resources(CLUSTER).values()][:1]
        replaced = [_resource(old.type_url, old.name, 9, *old.references) for old in there]
        for some, gone in (
            (replaced, []),
            (put, [(resource.type_url, resource.name) for resource in removed]),
        ):
            shared = shared.changed(some, gone)
            after = Snapshot.joined((*own, shared), before)
            content, was = _content(after), _content(before)
            _agree(after, Snapshot.of(content.values()))
            assert after.changed_since(before) == _step(was, content)
            before = after


def _content(of: Snapshot) -> Content:
    return {
        (resource.type_url, resource.name): resource
        for part in of.parts
        for t in part.tables.values()
        for resource in t.values()
    }


def _every(of: Snapshot) -> list[Resource]:
    return [resource for type_url in of.types() for resource in of.ordered(type_url)]


def test_references_of_an_unchanged_listener_are_not_searched_for_each_change() -> None:
    """Each group has a listener that refers to all endpoints, so only new resources may be searched."""
    counted = {}
    for count in (100, 1000):
        everyone = _everyone(count)
        needs = [(ENDPOINT, ResourceName(f"service-{n:04}")) for n in range(count)]
        own = ResourceSet.of([_resource(SECRET, "own-a", 0), _resource(LISTENER, "out", 0, *needs)])
        before = Snapshot.joined((everyone, own))
        assert before.missing() == ()
        changed = everyone.changed([_endpoints(7, 1), _cluster(2000), _endpoints(2000)])
        with counted_looks() as looks:
            after = Snapshot.joined((changed, own), before)
            assert after.missing() == ()
        counted[count] = looks.count
        gone = changed.changed(removed=[(ENDPOINT, ResourceName("service-0007"))])
        assert [item[0].name for item in Snapshot.joined((gone, own), after).missing()] == [
            "service-0007",
            "out",
        ]

    assert counted[1000] == counted[100]


def test_reference_of_one_part_may_be_satisfied_by_another() -> None:
    """The reference is missing only in snapshots without the resource, separately for each group."""
    everyone = _everyone(2)
    with_it = Snapshot.joined((everyone, ResourceSet.of([_resource(SECRET, "own-a", 0)])))

    assert everyone.needs() == {(SECRET, "own-a")}
    assert with_it.missing() == ()
    assert [item[0].name for item in Snapshot.joined((everyone,)).missing()] == [
        "service-0000",
        "service-0001",
    ]
    assert with_it.changed(removed=[(SECRET, ResourceName("own-a"))]).missing() != ()


def test_resource_moved_between_parts_counts_as_unchanged() -> None:
    """A snapshot is the union of its parts, whichever part has the resource."""
    whole, half, rest = _everyone(20), _everyone(10), ResourceSet.of(map(_cluster, range(10, 20)))
    ends = ResourceSet.of(map(_endpoints, range(10, 20)))

    assert Snapshot.joined((half, rest, ends)).changed_since(Snapshot.joined((whole,))) == {}
    assert Snapshot.joined((half, rest, ends)) == Snapshot.joined((whole,))


def test_resource_set_without_resources_equals_an_empty_one() -> None:
    """A set has no types after its last resource is removed."""
    nothing = _everyone(1).changed(removed=[(t, ResourceName("service-0000")) for t in TYPES])

    assert nothing.tables == {}
    assert Snapshot.joined(()) == Snapshot.joined((nothing,)) == Snapshot.of(())
    assert nothing.changed() is nothing
