"""Tests of pods with resources as a whole (`spec.resources`, Kubernetes 1.34): room for the sidecar.

An API server refuses a pod whose containers request more together, or have a higher limit, than the pod.
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
    answer = {"containers": [{"name": "app", "image": "app:1"}], "resources": resources, **spec}
    known = context({"metadata": {"name": "one"}, "spec": answer}, **JOINING, resources=own)
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
        # The sidecar's own limit is added to that of the pod.
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            {"requests": {"cpu": "50m"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "1050m"}, "limits": {"cpu": "3"}},
        ),
        # Without a request, an API server uses the limit as the request.
        (
            {"limits": {"memory": "1Gi"}},
            {"requests": {"memory": "128Mi"}},
            {"requests": {"memory": "1152Mi"}, "limits": {"memory": "1152Mi"}},
        ),
        # An API server fills in a missing request from the containers, with the sidecar's share.
        ({"requests": {"cpu": "1"}}, OWN, {"requests": {"cpu": "1050m", "memory": "128Mi"}}),
        # The sum is exact for numbers and for every notation.
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
def test_resources_of_the_pod_grow_by_those_of_the_sidecar(
    said: Any, own: Any, wanted: Any, placement: Any
) -> None:
    """The sum is exact. A second patch adds nothing, and the restored pod has the author's values."""
    made = patched(said, own=own, placement=placement)
    assert made["spec"]["resources"] == wanted
    again = context(made, **JOINING, resources=own)
    assert EnvoyDriver().patch(replace(again, placement=placement)) == made
    assert restored(made)["spec"]["resources"] == said
    assert (names.RESOURCES_ANNOTATION in made["metadata"]["annotations"]) == (said != wanted)


def test_missing_request_of_the_pod_is_the_sum_of_its_containers() -> None:
    """Containers that run at the same time count, native sidecars included.

    A container without a request counts with its limit.
    """
    asks = [{"resources": {field: {"cpu": item}}} for field, item in (("requests", "1"), ("limits", "2"))]
    containers = [{"name": f"c{at}", "image": "c", **item} for at, item in enumerate(asks)]
    first = {"name": "first", "image": "c", "resources": {"requests": {"cpu": "3900m"}}}
    native = {"name": "n", "image": "c", "restartPolicy": "Always", **asks[0]}
    limited = {"limits": {"cpu": "8"}}
    own = {"requests": {"cpu": "50m"}}
    for init, total in (([first], "3950m"), ([native], "4050m"), ([native, first], "4950m")):
        made = patched(limited, own=own, containers=containers, initContainers=init)
        assert made["spec"]["resources"] == {"limits": {"cpu": "8050m"}, "requests": {"cpu": total}}


def test_later_changes_of_resources_are_kept_when_restored() -> None:
    """A quantity that was changed stays, and an unchanged one loses the sidecar's share."""
    made: Any = copy.deepcopy(patched({"requests": {"cpu": "20m", "memory": "64Mi"}}))
    made["spec"]["resources"]["requests"] |= {"cpu": "0.5", "memory": str(192 * 1024 * 1024)}
    result: Any = restored(made)
    assert result["spec"]["resources"] == {"requests": {"cpu": "0.5", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"requests": {"cpu": "much"}}, "spec.resources.requests.cpu is 'much': must be a quantity"),
        ({"limits": {"memory": "."}}, "spec.resources.limits.memory is '.': must be a quantity"),
        ({"requests": {"cpu": "1" * 200}}, "a quantity has too many digits"),
    ],
)
def test_invalid_quantity_is_refused_with_its_field(said: Any, words: str) -> None:
    """The error names the field, unless a quantity has too many digits."""
    with pytest.raises(CannotPatchError, match=words):
        patched(said)


def test_changed_note_of_resources_is_refused() -> None:
    """The original resources cannot be guessed from a changed annotation."""
    for text in ("[]", "{", '{"is": 1, "was": {}}', '{"is": {"requests": 1}, "was": {}}'):
        made = patched({"requests": {"cpu": "20m"}})
        made["metadata"]["annotations"][names.RESOURCES_ANNOTATION] = text
        with pytest.raises(CannotPatchError, match="original-resources was changed"):
            restored(made)
