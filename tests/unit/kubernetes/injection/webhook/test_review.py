"""Tests of the answer to a review of a pod: operations of RFC 6902, or the reason of a refusal."""

import base64
import json
from typing import Any

import pytest

from meshwright.kubernetes.admission.turns import LateError
from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.decision import Reason
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.kubernetes.injection.webhook.review import Answer, Cause, Result, answer, operations, response
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.registry import DriverRegistry
from tests.tools.forked_cli import ROOT

SHOP = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "true"),))
KNOWN = InjectionInputs(
    read({"sidecar": {"image": "proxy:1"}}, "config.yaml"), DriverRegistry.discover().drivers
)


def _pod(**more: Any) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": "shop", "labels": {"app": "one"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, **more},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }


def _done(pod: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Apply operations of RFC 6902, as far as ours go: `add` and `remove` of members of mappings."""
    made: dict[str, Any] = json.loads(json.dumps(pod))
    for item in patch:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in item["path"].split("/")[1:]]
        place = made
        for part in way:
            place = place[part]
        if item["op"] == "add":
            place[last] = item["value"]
        else:
            assert item["op"] == "remove"
            del place[last]
    return made


def test_patch_results_in_the_pod_of_meshwright_inject() -> None:
    """The webhook and the command give the same pod, and the patched pod needs no further change."""
    output = answer(KNOWN, SHOP, _pod())
    assert output.result is Result.INJECTED
    made = _done(_pod(), output.patch)
    assert made == dict(injected(KNOWN, SHOP, checked(_pod())).pod or {})
    again = answer(KNOWN, SHOP, made)
    assert (again.result, again.patch) == (Result.UNCHANGED, ())


@pytest.mark.parametrize("steps", range(6))
def test_injection_stops_between_steps_after_its_caller_has_given_up(steps: int) -> None:
    """The check runs before each of five steps, because other pods wait for the thread."""
    left = [None] * steps

    def check() -> None:
        if not left:
            raise LateError
        left.pop()

    try:
        output = answer(KNOWN, SHOP, _pod(), check)
    except LateError:
        assert steps < 5
    else:
        assert (output.result, steps) == (Result.INJECTED, 5)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"metadata": {"labels": {"a": "b"}}, "spec": {}}),
        ({"metadata": {}, "spec": {"a": 1, "b": 2}}, {"metadata": {}, "spec": {"b": [3]}}),
        (
            {"metadata": {"annotations": {"x": "y"}}, "spec": {}},
            {"metadata": {"annotations": {}}, "spec": {}},
        ),
    ],
)
def test_operations_change_one_pod_into_the_other(before: Any, after: Any) -> None:
    """Members are added, replaced and removed."""
    assert _done({"spec": {}, **before}, operations({"spec": {}, **before}, after)) == after


def test_skipped_pod_has_the_reason_in_an_annotation() -> None:
    """The annotation and the audit annotation show the reason later."""
    output = answer(KNOWN, SHOP, _pod(labels={"meshwright.dev/inject": "false"}))
    assert output.result is Result.SKIPPED
    made = _done(_pod(), output.patch)
    words = "none: label meshwright.dev/inject is false"
    assert made["metadata"]["annotations"] == {"meshwright.dev/injection": words}
    assert made["spec"] == _pod()["spec"]
    audit = response("u1", output)["auditAnnotations"]
    assert audit == {"injection": "skipped: label meshwright.dev/inject is false"}


def test_mirror_pod_of_a_static_pod_gets_no_sidecar() -> None:
    """An API server refuses a mirror pod with a token, Secret or ConfigMap.

    Only the reason annotation is added.
    """
    about = {
        "annotations": {
            **dict.fromkeys(("kubernetes.io/config.hash", "kubernetes.io/config.mirror"), "5e3f"),
            "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
            "kubernetes.io/config.source": "file",
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": True}],
    }
    output = answer(KNOWN, SHOP, _pod(**about))
    assert (output.result, [item["path"] for item in output.patch]) == (
        Result.SKIPPED,
        ["/metadata/annotations"],
    )
    noted = _done(_pod(**about), output.patch)["metadata"]["annotations"]["meshwright.dev/injection"]
    assert noted == ("none: the pod mirrors a static pod: it has the annotation kubernetes.io/config.mirror")


@pytest.mark.parametrize(
    "annotations",
    [{"x": "y" * (256 * 1024 - 9)}, {"meshwright.dev/injected": "{}"}],
)
def test_skipped_pod_is_unchanged_if_the_reason_cannot_be_added(annotations: dict[str, str]) -> None:
    """The API limits all annotations to 256 KiB.

    A pod that already has a sidecar must not have a note that it has none.
    """
    output = answer(KNOWN, SHOP, _pod(labels={"meshwright.dev/inject": "false"}, annotations=annotations))
    assert (output.result, output.patch) == (Result.SKIPPED, ())


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (_pod(labels={"meshwright.dev/inject": "yes"}), "label meshwright.dev/inject is 'yes'"),
        ({"metadata": {}, "spec": {"containers": 1}}, "spec.containers must be a list"),
        (_pod(annotations={"meshwright.dev/overlays": "none-such"}), "none-such"),
    ],
)
def test_pod_that_cannot_be_injected_is_refused(document: Any, words: str) -> None:
    """The message names the label, field or overlay at fault."""
    output = response("u1", answer(KNOWN, SHOP, document))
    status: Any = output["status"]
    assert (output["allowed"], "patch" in output) == (False, False)
    assert words in status["message"]


def test_response_has_the_form_of_the_admission_api() -> None:
    """The patch is base64 with its type, and each warning is a separate line."""
    patch = ({"op": "add", "path": "/spec/x", "value": 1},)
    output = response("u1", Answer(Result.INJECTED, "the policy is enabled", Reason.POLICY, patch, ("look",)))
    assert output["allowed"] is True
    assert (output["patchType"], output["warnings"]) == ("JSONPatch", ["look"])
    assert json.loads(base64.b64decode(str(output["patch"]))) == list(patch)


def test_classic_sidecar_in_a_pod_of_a_job_has_a_warning() -> None:
    """A classic sidecar does not end by itself, so the Job would never complete.

    The owner reference shows the Job.
    """
    owned = [{"apiVersion": "batch/v1", "kind": "Job", "name": "one", "uid": "1"}]
    classic = {"meshwright.dev/sidecar-placement": "classic"}
    output = answer(KNOWN, SHOP, _pod(ownerReferences=owned, annotations=classic))
    assert output.result is Result.INJECTED
    assert any("does not end by itself" in warning for warning in output.warnings)


def test_every_reason_of_the_pod_metric_is_documented() -> None:
    """docs/operate/metrics.md lists each value of the label at `meshwright_injection_pods_total`."""
    lines = (ROOT / "docs" / "operate" / "metrics.md").read_text("utf-8").splitlines()
    (line,) = [item for item in lines if item.startswith("| `meshwright_injection_pods_total`")]
    assert [item for item in (*Reason, *Cause) if f"`{item}`" not in line] == []
