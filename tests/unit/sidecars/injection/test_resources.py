"""Pods that ask for CPU and memory as a whole (`spec.resources`, Kubernetes 1.34): room for the sidecar.

An API server refuses one whose containers ask for more together, or have a higher limit, than the pod.
"""

import copy
from dataclasses import replace
from typing import Any

import pytest

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.pod import Placement
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.restoration import restored
from tests.unit.sidecars.injection.test_patch import JOINING, context

OWN = {"requests": {"cpu": "50m", "memory": "128Mi"}}


def patched(resources: Any, *, own: Any = OWN, placement: Any = Placement.NATIVE, **spec: Any) -> Any:
    """Return a pod with a sidecar; `resources` are the pod's, `own` the sidecar's."""
    said = {"containers": [{"name": "app", "image": "app:1"}], "resources": resources, **spec}
    known = context({"metadata": {"name": "one"}, "spec": said}, **JOINING, resources=own)
    return EnvoyDriver().patch(replace(known, placement=placement))


@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize(
    ("said", "own", "wanted"),
    [
        (
            {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"cpu": "20m", "memory": "64Mi"}},
            OWN,
            {"requests": {"cpu": "70m", "memory": "192Mi"}, "limits": {"cpu": "70m", "memory": "192Mi"}},
        ),
        # With a limit of its own the sidecar may use that, and the pod be no less.
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            {"requests": {"cpu": "50m"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "1050m"}, "limits": {"cpu": "3"}},
        ),
        # Only a limit: an API server takes it for what is asked for.
        (
            {"limits": {"memory": "1Gi"}},
            {"requests": {"memory": "128Mi"}},
            {"requests": {"memory": "1152Mi"}, "limits": {"memory": "1152Mi"}},
        ),
        # What the pod does not say an API server would fill in, and then it would be added to.
        ({"requests": {"cpu": "1"}}, OWN, {"requests": {"cpu": "1050m", "memory": "128Mi"}}),
        # Exactly, also of numbers and in other notations.
        ({"requests": {"cpu": 0.1}}, {"requests": {"cpu": "0.2"}}, {"requests": {"cpu": "300m"}}),
        ({"requests": {"memory": "1e9"}}, {"requests": {"memory": "24M"}}, {"requests": {"memory": "1024M"}}),
        (
            {"requests": {"memory": "9007199254740993"}},
            {"requests": {"memory": "1"}},
            {"requests": {"memory": "9007199254740994"}},
        ),
        ({"requests": {"cpu": "1"}}, {}, {"requests": {"cpu": "1"}}),
        ({"requests": {"cpu": "1"}}, {"requests": {"ephemeral-storage": "1Gi"}}, {"requests": {"cpu": "1"}}),
        ({}, OWN, {}),
    ],
)
def test_there_is_room_for_the_sidecar(said: Any, own: Any, wanted: Any, placement: Any) -> None:
    """Of the very size; a second time nothing is added, and the way back gives what its author wrote."""
    made = patched(said, own=own, placement=placement)
    assert made["spec"]["resources"] == wanted
    again = context(made, **JOINING, resources=own)
    assert EnvoyDriver().patch(replace(again, placement=placement)) == made
    assert restored(made)["spec"]["resources"] == said
    assert (names.RESOURCES_ANNOTATION in made["metadata"]["annotations"]) == (said != wanted)


def test_what_containers_ask_for_is_what_a_pod_asks_for_that_does_not_say() -> None:
    """Those that run at a time, with native sidecars; a container's limit where it does not ask."""
    asks = [{"resources": {field: {"cpu": each}}} for field, each in (("requests", "1"), ("limits", "2"))]
    containers = [{"name": f"c{at}", "image": "c", **each} for at, each in enumerate(asks)]
    first = {"name": "first", "image": "c", "resources": {"requests": {"cpu": "3900m"}}}
    native = {"name": "n", "image": "c", "restartPolicy": "Always", **asks[0]}
    limited = {"limits": {"cpu": "8"}}
    own = {"requests": {"cpu": "50m"}}
    for init, total in (([first], "3950m"), ([native], "4050m"), ([native, first], "4950m")):
        made = patched(limited, own=own, containers=containers, initContainers=init)
        assert made["spec"]["resources"] == {"limits": {"cpu": "8050m"}, "requests": {"cpu": total}}


def test_what_somebody_has_changed_since_stays() -> None:
    """And is what the sidecar's share comes to the next time."""
    made: Any = copy.deepcopy(patched({"requests": {"cpu": "20m", "memory": "64Mi"}}))
    made["spec"]["resources"]["requests"] |= {"cpu": "0.5", "memory": str(192 * 1024 * 1024)}
    found: Any = restored(made)
    assert found["spec"]["resources"] == {"requests": {"cpu": "0.5", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"requests": {"cpu": "much"}}, "spec.resources.requests.cpu is 'much': must be a quantity"),
        ({"limits": {"memory": "."}}, "spec.resources.limits.memory is '.': must be a quantity"),
        ({"requests": {"cpu": "1" * 200}}, "a quantity has too many digits"),
    ],
)
def test_a_quantity_that_is_none_is_refused(said: Any, words: str) -> None:
    """By its field."""
    with pytest.raises(CannotPatchError, match=words):
        patched(said)


def test_notes_that_somebody_has_changed_are_not_guessed_at() -> None:
    """As of the others."""
    for text in ("[]", "{", '{"is": 1, "was": {}}', '{"is": {"requests": 1}, "was": {}}'):
        made = patched({"requests": {"cpu": "20m"}})
        made["metadata"]["annotations"][names.RESOURCES_ANNOTATION] = text
        with pytest.raises(CannotPatchError, match="original-resources was changed"):
            restored(made)
