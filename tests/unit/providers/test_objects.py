"""Objects that hold themselves, as a cluster has them: the same rule of the last good form as for files."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.providers.objects import Objects, read_form
from meshwright.specs.reader import read
from tests.meshes.texts import account, account_key, workload, workload_key
from tests.tools import libyaml

POD = """
apiVersion: v1
kind: Pod
metadata: {name: w, namespace: shop}
spec: {serviceAccountName: w}
status: {podIP: %s}
"""


class Cluster(Objects[ObjectKey]):
    """What a cluster has, as it would be watched: each object under its key, with its version."""

    __slots__ = ()

    def apply(self, key: ObjectKey, version: str, text: str | None) -> "Cluster":
        """Return the state with an object's new version, or without the object."""
        if text is None:
            return self.holding({key: None})
        origin, document = InCluster("east", version), libyaml.load(text)
        return self.holding(
            {key: read_form(version, [(origin, read(document, origin))], self.holders.get(key))}
        )

    @staticmethod
    def holder_of(sourced: SourcedObject) -> ObjectKey:
        """Return the object's own key."""
        return sourced.key


def _pod_key() -> ObjectKey:
    (key, *_) = workload_key("w").forms()
    return key


def _in_force(state: Cluster) -> dict[str, tuple[str, bool]]:
    return {str(key): (str(each.origin), each.stale) for key, each in state.objects().items()}


def test_an_object_that_becomes_bad_keeps_its_last_good_form() -> None:
    """Marked stale, where it was last good; mended it is fresh, deleted it is gone."""
    key = workload_key("w")
    good = Cluster().apply(key, "1", workload("w", "10.0.0.1"))
    bad = good.apply(key, "2", workload("w", "10.0.0"))
    assert _in_force(bad) == {"Workload shop/w": ("east (resourceVersion 1)", True)}
    assert [(each.code, str(each.origin)) for each in bad.problems()] == [
        ("MW1013", "east (resourceVersion 2)"),
        ("MW1107", "east (resourceVersion 2)"),
    ]
    mended = bad.apply(key, "3", workload("w", "10.0.0.1"))
    assert _in_force(mended) == {"Workload shop/w": ("east (resourceVersion 3)", False)}
    assert bad.apply(key, "3", None) == Cluster()
    assert Cluster().apply(key, "1", workload("w", "10.0.0")).objects() == {}


def test_what_two_objects_claim_is_the_first_ones() -> None:
    """A Pod and a Workload of one name; when the first goes, the other is in force."""
    pod, key = _pod_key(), workload_key("w")
    both = Cluster().apply(key, "1", workload("w", "10.0.0.1")).apply(pod, "2", POD % "10.0.0.9")
    assert _in_force(both) == {"Pod shop/w": ("east (resourceVersion 2)", False)}
    assert [each.code for each in both.problems()] == ["MW1106"]
    assert _in_force(both.apply(pod, "3", None)) == {"Workload shop/w": ("east (resourceVersion 1)", False)}


TEXTS: dict[ObjectKey, list[str | None]] = {
    account_key("a"): [None, account("a")],
    workload_key("w"): [None, workload("w", "10.0.0.1"), workload("w", "10.0.0.2"), workload("w", "10.0.0")],
    _pod_key(): [None, POD % "10.0.0.9", POD % "10.0.0.1", POD % "x"],
}
STEPS = st.one_of([st.tuples(st.just(key), st.sampled_from(texts)) for key, texts in TEXTS.items()])


@given(st.lists(STEPS, max_size=10))
def test_a_cluster_comes_to_what_its_objects_hold(steps: list[tuple[ObjectKey, str | None]]) -> None:
    """Whatever came before, and in whatever order."""
    state = Cluster()
    for version, (key, text) in enumerate(steps):
        state = state.apply(key, str(version), text)
    anew: Any = Cluster()
    for holder in reversed(tuple(state.holders)):
        anew = anew.holding({holder: state.holders[holder]})
    for each in (anew, Cluster().holding(dict(state.holders))):
        assert (dict(each.objects()), each.problems()) == (dict(state.objects()), state.problems())
        assert (each.contested, each.stale) == (state.contested, state.stale)
