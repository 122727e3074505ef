"""Tests that manifests and merged sources have the same state step by step and built at once."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.values.picture import Picture
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.merge import MergedObjects, merge
from tests.meshes.texts import account, workload

POD = """
apiVersion: v1
kind: Pod
metadata: {name: w, namespace: shop}
spec: {serviceAccountName: w}
status: {podIP: 10.0.0.9}
"""
TEXTS = (
    None,
    "",
    account("a"),
    account("b"),
    account("a") + "---\n" + account("b"),
    account("a") + "---\n" + account("a"),
    workload("w", "10.0.0.1"),
    workload("w", "10.0.0.2"),
    workload("v", "10.0.0.1"),
    POD,
    "kind: [",
    account("b") + "---\nkind: [",
)
STEPS = st.dictionaries(st.sampled_from(("x.yaml", "y.yaml", "z.yaml")), st.sampled_from(TEXTS), min_size=1)


@given(st.lists(STEPS, max_size=8))
def test_manifests_after_steps_equal_manifests_built_at_once(steps: list[dict[str, str | None]]) -> None:
    """The order of files makes no difference for objects, problems and duplicates."""
    state = Manifests()
    for step in steps:
        state = state.apply_all(step)
    anew = Manifests()
    for file in reversed(tuple(state.holders)):
        anew = anew._with({file: state.holders[file]})
    at_once = Manifests()._with(dict(state.holders))
    for manifests in (anew, at_once):
        assert dict(manifests.objects()) == dict(state.objects())
        assert manifests.problems() == state.problems()
        assert manifests.contested == state.contested
        assert manifests.stale == sum(sourced_object.stale for sourced_object in manifests.objects().values())
    assert state.stale == at_once.stale


NAMES = ("one", "two", "three")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TEXTS)), max_size=12))
def test_sources_merged_step_by_step_equal_sources_merged_at_once(
    steps: list[tuple[str, str | None]],
) -> None:
    """The sources may have equal, different, bad or stale objects, or none.

    A follower that applies the differences of every step has the same objects, and so has one that follows
    only now and then.
    """
    states = {name: Manifests() for name in NAMES}
    merged = seldom = merge([(name, state.objects()) for name, state in states.items()])
    follower, lazy = dict(merged.objects()), dict(merged.objects())
    for number, (name, text) in enumerate(steps):
        states[name] = states[name].apply(f"{name}.yaml", text)
        answer = [(name, state.objects()) for name, state in states.items()]
        before, merged = merged, merge(answer, merged)
        _follow(follower, merged.since(before))
        if number % 3 == 2:
            seldom = _caught_up(lazy, merged, seldom)
        anew = merge([(name, Picture(dict(objects))) for name, objects in reversed(answer)][::-1])
        assert (merged.objects(), merged.problems) == (anew.objects(), anew.problems)
        assert dict(sorted(follower.items())) == merged.objects()
    _caught_up(lazy, merged, seldom)
    assert dict(sorted(lazy.items())) == merged.objects()


def _caught_up(
    held: dict[ObjectKey, SourcedObject], merged: MergedObjects, before: MergedObjects
) -> MergedObjects:
    _follow(held, merged.since(before))
    return merged


def _follow(held: dict[ObjectKey, SourcedObject], edits: Mapping[ObjectKey, SourcedObject | None]) -> None:
    for key, sourced in edits.items():
        if sourced is None:
            del held[key]
        else:
            held[key] = sourced
