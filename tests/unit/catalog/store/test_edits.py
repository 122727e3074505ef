"""Tests of edits: the difference of two states, and the order of many edits."""

from hypothesis import given
from hypothesis import strategies as st

from catalog.store.edits import Edits, difference
from catalog.store.settings import Admission
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.objects import EndpointSlice
from tests.meshes import values as a

KEYS = st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 2))


@given(KEYS, KEYS)
def test_difference_leads_from_one_state_to_the_other(before: dict[str, int], after: dict[str, int]) -> None:
    """The result is independent of order, and has only keys whose value changed."""
    result = difference(before, after)
    assert {**before, **result} == {**dict.fromkeys(before.keys() - after.keys()), **after}
    assert all(before.get(key) != value for key, value in result.items())


def test_edits_are_split_by_kind_with_deletions_before_additions() -> None:
    """A new object may have the name of a deleted one.

    Services and slices precede the workloads that belong to them.
    """
    endpoint_slice = EndpointSlice("s", Namespace("default"), "s-1", ("10.0.0.1",), ())
    comes = a.objects(a.workload("w", "10.0.0.1"), endpoint_slice, a.service("s"))
    goes = dict.fromkeys(a.objects(a.workload("v", "10.0.0.2"), a.service("t")))
    name = a.workload("w", "10.0.0.1").proxy_name
    assert name is not None
    edits = Edits({**comes, **goes}, {name: Admission.ADMITTED})
    parts = [[*map(str, part.objects)] or "admission" for part in edits.parts(1)]
    assert parts == [
        ["Service default/t"],
        ["Service default/s"],
        ["EndpointSlice default/s-1"],
        "admission",
        ["Workload default/v"],
        ["Workload default/w"],
    ]
    assert [*edits.parts(6)] == [edits]


def test_pod_replaces_the_workload_of_its_name() -> None:
    """This works in either order of the two keys, and in both directions."""
    view = a.view(a.workload("w", "10.0.0.1"))
    (workload,) = view.sourced.values_unrecorded().values()
    pod = a.pod("w", "10.0.0.2")
    for steps in ((workload.key, None), (pod.key, pod)), ((pod.key, None), (workload.key, workload)):
        for edits in (dict(steps), dict(reversed(steps))):
            view.apply(Edits(edits))
            assert [item.address for item in view.workloads.values()] == [
                IpAddress("10.0.0.2" if edits.get(pod.key) else "10.0.0.1")
            ]
