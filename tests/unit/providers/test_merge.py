"""Tests of merging the objects of several sources."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.objects import EndpointSlice, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects, merge
from tests.meshes import values as a

Objects = dict[ObjectKey, SourcedObject]

W = a.workload("w", "10.0.0.1")
SLICE = EndpointSlice("s", Namespace("default"), "s-1", ("10.0.0.1",), (("", 80),))
TARGET = a.target("t", "a", "b", a.http("all"))


def _said(*things: object, at: str = "test") -> Picture[ObjectKey, SourcedObject]:
    sourced_objects = a.objects(*things)
    return Picture(
        {key: replace(sourced_object, origin=InFile(at)) for key, sourced_object in sourced_objects.items()}
    )


def test_object_of_the_earlier_source_is_used() -> None:
    """A different object in a later source is a problem that names both places; an equal one is none."""
    moved, later = replace(W, address=IpAddress("10.0.0.2")), a.workload("v", "10.0.0.3")
    wider = replace(TARGET, sources=(a.identity("a"), a.identity("c")))
    one, two = _said(W, TARGET, at="one.yaml"), _said(moved, later, SLICE, wider, at="two.yaml")
    merged = merge([("one", one), ("two", two), ("three", _said(W, TARGET, at="three.yaml"))])
    assert merged.objects() == dict(sorted({**two, **one}.items()))
    text = (
        "the source one has a different object of this name (one.yaml:1 (document 1)); the "
        "object of one is used, because one has precedence. Remove one of the two objects"
    )
    workload, target = a.object_key(W), a.object_key(TARGET)
    assert merged.problems == (
        Problem(code="MW1108", severity=Severity.ERROR, origin=InFile("two.yaml"), key=target, expected=text),
        Problem(
            code="MW1108", severity=Severity.WARNING, origin=InFile("two.yaml"), key=workload, expected=text
        ),
    )


def test_objects_that_differ_only_in_creation_time_are_equal() -> None:
    """A file has no creation time, and its copy in the cluster has one."""
    things = (W, a.service("s"), a.split("s", "s", ("s", 1)))
    aged = tuple(replace(item, created="2026-01-01T00:00:00Z") for item in things)
    for one, two in ((things, aged), (aged, things)):
        merged = merge([("one", _said(*one)), ("two", _said(*two))])
        assert (merged.problems, merged.objects()) == ((), dict(_said(*one)))


def test_pod_replaces_a_workload_of_the_same_name_from_a_later_source() -> None:
    """Both are the same workload, so only the first source's object is in force."""
    pod, workloads = a.pod("w", "10.0.0.9"), _said(W)
    before = merge([("cluster", Picture()), ("directory", workloads)])
    after = merge([("cluster", Picture({pod.key: pod})), ("directory", workloads)], before)
    assert list(after.since(before).items()) == [(a.object_key(W), None), (pod.key, pod)]
    assert after.objects() == {pod.key: pod}
    assert [problem.key for problem in after.problems] == [a.object_key(W)]
    assert merge([("cluster", Picture()), ("directory", workloads)], after).since(before) == {}


def test_no_sources_merge_to_nothing_and_unchanged_sources_to_the_same_result() -> None:
    """An unchanged merge returns the same instance."""
    assert merge([]) == MergedObjects()
    merged = merge([("one", _said(W))])
    assert merge(merged.states, merged) is merged


def test_removed_source_takes_its_objects_with_it() -> None:
    """An object that only the removed source had is deleted."""
    both = merge([("one", _said(W)), ("two", _said(SLICE))])
    assert merge(both.states[:1], both).since(both) == {a.object_key(SLICE): None}


POD = a.pod("w", "10.0.0.9")
THINGS: tuple[SourcedObject, ...] = (
    *_said(W, SLICE, TARGET, at="one").values(),
    *_said(replace(W, address=IpAddress("10.0.0.2")), a.workload("v", "10.0.0.3"), at="two").values(),
    POD,
)
HELD = st.lists(st.sampled_from(THINGS), unique_by=lambda sourced_object: sourced_object.key.claim).map(
    lambda sourced_objects: {sourced_object.key: sourced_object for sourced_object in sourced_objects}
)


@given(st.lists(st.tuples(HELD, HELD), min_size=1, max_size=5))
def test_differences_lead_from_any_merge_to_the_next(history: list[tuple[Objects, Objects]]) -> None:
    """Applied to the earlier objects, the differences give the present ones, whichever sources hold them."""
    pictures: list[Picture[ObjectKey, SourcedObject]] = [Picture(), Picture()]
    merged, known = merge([("one", pictures[0]), ("two", pictures[1])]), dict[ObjectKey, SourcedObject]()
    for both in history:
        gone = [dict.fromkeys(picture) for picture in pictures]
        pictures = [
            picture.changed({**went, **now}) for picture, went, now in zip(pictures, gone, both, strict=True)
        ]
        before, merged = merged, merge([("one", pictures[0]), ("two", pictures[1])], merged)
        for key, sourced_object in merged.since(before).items():
            if sourced_object is None:
                del known[key]
            else:
                assert not [other for other in known if other != key and other.claim == key.claim]
                known[key] = sourced_object
        expected = {claim: now[key] for now in reversed(both) for key in now for claim in (key.claim,)}
        assert {key.claim: sourced_object for key, sourced_object in known.items()} == expected
        assert merged.disputes == merge([("one", pictures[0]), ("two", pictures[1])]).disputes
