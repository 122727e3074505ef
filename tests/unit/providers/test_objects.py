"""Tests of the last good form for objects of a cluster, which each have their own key."""

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
    """The watched objects of a cluster: each under its key, with its version."""

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
    return {
        str(key): (str(sourced_object.origin), sourced_object.stale)
        for key, sourced_object in state.objects().items()
    }


def test_invalid_object_keeps_its_last_good_form() -> None:
    """It is stale with its last good origin; a correction makes it fresh, and a deletion removes it."""
    key = workload_key("w")
    good = Cluster().apply(key, "1", workload("w", "10.0.0.1"))
    bad = good.apply(key, "2", workload("w", "10.0.0"))
    assert _in_force(bad) == {"Workload shop/w": ("east (resourceVersion 1)", True)}
    assert [(problem.code, str(problem.origin)) for problem in bad.problems()] == [
        ("MW1013", "east (resourceVersion 2)"),
        ("MW1107", "east (resourceVersion 2)"),
    ]
    mended = bad.apply(key, "3", workload("w", "10.0.0.1"))
    assert _in_force(mended) == {"Workload shop/w": ("east (resourceVersion 3)", False)}
    assert bad.apply(key, "3", None) == Cluster()
    assert Cluster().apply(key, "1", workload("w", "10.0.0")).objects() == {}


def test_first_of_two_objects_with_one_claim_is_in_force() -> None:
    """A Pod and a Workload have the same name; once the Pod is deleted, the Workload is in force."""
    pod, key = _pod_key(), workload_key("w")
    both = Cluster().apply(key, "1", workload("w", "10.0.0.1")).apply(pod, "2", POD % "10.0.0.9")
    assert _in_force(both) == {"Pod shop/w": ("east (resourceVersion 2)", False)}
    assert [problem.code for problem in both.problems()] == ["MW1106"]
    assert _in_force(both.apply(pod, "3", None)) == {"Workload shop/w": ("east (resourceVersion 1)", False)}


TEXTS: dict[ObjectKey, list[str | None]] = {
    account_key("a"): [None, account("a")],
    workload_key("w"): [None, workload("w", "10.0.0.1"), workload("w", "10.0.0.2"), workload("w", "10.0.0")],
    _pod_key(): [None, POD % "10.0.0.9", POD % "10.0.0.1", POD % "x"],
}
STEPS = st.one_of([st.tuples(st.just(key), st.sampled_from(texts)) for key, texts in TEXTS.items()])


@given(st.lists(STEPS, max_size=10))
def test_state_depends_only_on_the_present_objects(steps: list[tuple[ObjectKey, str | None]]) -> None:
    """The history and the order of changes make no difference."""
    state = Cluster()
    for version, (key, text) in enumerate(steps):
        state = state.apply(key, str(version), text)
    anew: Any = Cluster()
    for holder in reversed(tuple(state.holders)):
        anew = anew.holding({holder: state.holders[holder]})
    for item in (anew, Cluster().holding(dict(state.holders))):
        assert (dict(item.objects()), item.problems()) == (dict(state.objects()), state.problems())
        assert (item.contested, item.stale) == (state.contested, state.stale)
