"""The states of manifests and of several sources come out the same, step by step and from nothing."""

from hypothesis import given
from hypothesis import strategies as st

from mesh.endpoints import Inventory
from providers.manifests import Manifests
from providers.merge import merge
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
def test_manifests_come_to_what_their_files_hold(steps: list[dict[str, str | None]]) -> None:
    """Whatever file came first: objects, workloads, problems, and what more than one file holds."""
    state = Manifests()
    for step in steps:
        state = state.apply_all(step)
    anew = Manifests()
    for file in reversed(tuple(state.files)):
        anew = anew._with({file: state.files[file]})
    at_once = Manifests()._with(dict(state.files))
    for each in (anew, at_once):
        assert dict(each.objects()) == dict(state.objects())
        assert each.inventory() == state.inventory()
        assert each.problems() == state.problems()
        assert each.contested == state.contested
        assert each.stale == sum(found.stale for found in each.objects().values())
    assert state.stale == at_once.stale


INVENTORIES = [
    Manifests().apply("x.yaml", text).inventory()
    for text in ("", workload("w", "10.0.0.1"), workload("w", "10.0.0.2"), workload("v", "10.0.0.3"), POD)
]


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(INVENTORIES)), max_size=8))
def test_sources_merge_to_what_they_say(steps: list[tuple[str, Inventory]]) -> None:
    """Whatever they said before."""
    said = {"one": Inventory(), "two": Inventory()}
    merged = merge(tuple(said.items()))
    for name, found in steps:
        said[name] = found
        merged = merge(tuple(said.items()), merged)
        anew = merge(tuple(said.items()))
        assert (merged.inventory, merged.disputes) == (anew.inventory, anew.disputes)
