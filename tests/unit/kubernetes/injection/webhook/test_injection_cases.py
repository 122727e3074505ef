"""Tests of the injection cases through the webhook.

The patch results in the golden file, and a second review has an empty patch.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

import pytest

from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.manifests import namespaces_in
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.kubernetes.injection.webhook.review import Result, answer
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.injection.names import REASON_ANNOTATION
from tests.tools import libyaml
from tests.unit.kubernetes.injection.test_by_hand import CONFIG, NAMES
from tests.unit.kubernetes.injection.test_istio_list import objects, pod_of

KNOWN: Final = InjectionInputs(
    read(libyaml.load(CONFIG.read_text("utf-8")), "config.yaml"),
    {"envoy": EnvoyDriver()},
)
SPACE: Final = NamespaceObject(Namespace("default"))


def _asked(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod as in a review."""
    metadata = {"name": "asked", **pod.get("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata}


def _patched(document: dict[str, Any], patch: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    """Return a document after a patch that adds or removes fields of its metadata and spec."""
    result = copy.deepcopy(document)
    for item in patch:
        section, field = item["path"].strip("/").split("/", 1)
        if item["op"] == "remove":
            del result[section][field]
        else:
            assert item["op"] == "add"
            result[section][field.replace("~1", "/")] = item["value"]
    return result


@pytest.mark.parametrize("name", NAMES)
def test_webhook_results_in_the_golden_file_and_is_idempotent(name: str) -> None:
    """Each pod is reviewed on its own.

    A review of the patched pod has an empty patch, and a skipped pod changes only in its reason annotation.
    """
    looked, space = 0, namespaces_in(iter(objects(name))).get("default", SPACE)
    for before, after in zip(objects(name), objects(name, "injected"), strict=True):
        pod, wanted = pod_of(before), pod_of(after)
        if pod is None or wanted is None:
            continue
        looked += 1
        response = answer(KNOWN, space, _asked(pod))
        if pod == wanted:
            left = _patched(_asked(pod), response.patch)
            left["metadata"].get("annotations", {}).pop(REASON_ANNOTATION, None)  # the reason
            theirs = {"annotations": {}, **_asked(pod)["metadata"]}
            assert response.result is Result.SKIPPED
            assert {"annotations": {}, **left["metadata"]} == theirs
            assert left["spec"] == pod["spec"]
            continue
        assert response.result is Result.INJECTED
        made = _patched(_asked(pod), response.patch)
        assert made == _asked(wanted)
        again = answer(KNOWN, space, made)
        assert (again.result, again.patch) == (Result.UNCHANGED, ())
    assert looked


def test_webhook_refuses_the_annotation_that_inject_refuses() -> None:
    """The message is that of `meshwright inject`."""
    pod: Any = {
        "metadata": {"annotations": {"meshwright.dev/inject": "x"}},
        "spec": {"containers": [{"name": "a"}]},
    }
    response = answer(KNOWN, SPACE, _asked(pod))
    assert (response.result, response.patch) == (Result.REFUSED, ())
    assert response.words == "annotation meshwright.dev/inject is 'x': must be one of false, true"
