"""What an API server is answered about a pod: operations of RFC 6902, or why it is not made."""

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
    """Apply operations as RFC 6902 has them, as far as ours go: `add` and `remove` of members of mappings."""
    made: dict[str, Any] = json.loads(json.dumps(pod))
    for each in patch:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        place = made
        for part in way:
            place = place[part]
        if each["op"] == "add":
            place[last] = each["value"]
        else:
            assert each["op"] == "remove"
            del place[last]
    return made


def test_the_operations_make_the_pod() -> None:
    """The very one that `meshwright inject` makes; on it, nothing is to be done."""
    said = answer(KNOWN, SHOP, _pod())
    assert said.result is Result.INJECTED
    made = _done(_pod(), said.patch)
    assert made == dict(injected(KNOWN, SHOP, checked(_pod())).pod or {})
    again = answer(KNOWN, SHOP, made)
    assert (again.result, again.patch) == (Result.UNCHANGED, ())


@pytest.mark.parametrize("steps", range(6))
def test_work_stops_between_its_steps_when_nobody_waits(steps: int) -> None:
    """Whatever the step: the API server has given up, and other Pods wait."""
    left = [None] * steps

    def check() -> None:
        if not left:
            raise LateError
        left.pop()

    try:
        said = answer(KNOWN, SHOP, _pod(), check)
    except LateError:
        assert steps < 5
    else:
        assert (said.result, steps) == (Result.INJECTED, 5)


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
def test_operations_lead_from_one_pod_to_the_other(before: Any, after: Any) -> None:
    """Whatever stands in them."""
    assert _done({"spec": {}, **before}, operations({"spec": {}, **before}, after)) == after


def test_a_pod_that_is_left_alone_says_why() -> None:
    """In its annotation, for who looks at it later, and for the audit log."""
    said = answer(KNOWN, SHOP, _pod(labels={"meshwright.dev/inject": "false"}))
    assert said.result is Result.SKIPPED
    made = _done(_pod(), said.patch)
    words = "none: label meshwright.dev/inject is false"
    assert made["metadata"]["annotations"] == {"meshwright.dev/injection": words}
    assert made["spec"] == _pod()["spec"]
    audit = response("u1", said)["auditAnnotations"]
    assert audit == {"injection": "skipped: label meshwright.dev/inject is false"}


def test_a_mirror_of_a_static_pod_is_left_as_it_is() -> None:
    """As a kubelet makes one: an API server refuses it with a token, a Secret or a ConfigMap in it."""
    about = {
        "annotations": {
            **dict.fromkeys(("kubernetes.io/config.hash", "kubernetes.io/config.mirror"), "5e3f"),
            "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
            "kubernetes.io/config.source": "file",
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": True}],
    }
    said = answer(KNOWN, SHOP, _pod(**about))
    assert (said.result, [each["path"] for each in said.patch]) == (Result.SKIPPED, ["/metadata/annotations"])
    noted = _done(_pod(**about), said.patch)["metadata"]["annotations"]["meshwright.dev/injection"]
    assert noted == ("none: the pod mirrors a static pod: it has the annotation kubernetes.io/config.mirror")


@pytest.mark.parametrize(
    "annotations",
    [{"x": "y" * (256 * 1024 - 9)}, {"meshwright.dev/injected": "{}"}],
)
def test_a_pod_is_left_as_it_is_where_no_word_can_be_said(annotations: dict[str, str]) -> None:
    """The API has 256 KiB for all annotations; and a pod with a sidecar is not said to have none."""
    said = answer(KNOWN, SHOP, _pod(labels={"meshwright.dev/inject": "false"}, annotations=annotations))
    assert (said.result, said.patch) == (Result.SKIPPED, ())


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (_pod(labels={"meshwright.dev/inject": "yes"}), "label meshwright.dev/inject is 'yes'"),
        ({"metadata": {}, "spec": {"containers": 1}}, "spec.containers must be a list"),
        (_pod(annotations={"meshwright.dev/overlays": "none-such"}), "none-such"),
    ],
)
def test_a_pod_that_cannot_have_one_is_not_made(document: Any, words: str) -> None:
    """The message names the field."""
    said = response("u1", answer(KNOWN, SHOP, document))
    status: Any = said["status"]
    assert (said["allowed"], "patch" in said) == (False, False)
    assert words in status["message"]


def test_the_answer_is_as_the_api_has_it() -> None:
    """A patch in base64, with its type; warnings are lines of their own."""
    patch = ({"op": "add", "path": "/spec/x", "value": 1},)
    said = response("u1", Answer(Result.INJECTED, "the policy is enabled", Reason.POLICY, patch, ("look",)))
    assert said["allowed"] is True
    assert (said["patchType"], said["warnings"]) == ("JSONPatch", ["look"])
    assert json.loads(base64.b64decode(str(said["patch"]))) == list(patch)


def test_a_jobs_pod_with_a_classic_sidecar_is_warned_of() -> None:
    """Its owner says that it is a Job's."""
    owned = [{"apiVersion": "batch/v1", "kind": "Job", "name": "one", "uid": "1"}]
    classic = {"meshwright.dev/sidecar-placement": "classic"}
    said = answer(KNOWN, SHOP, _pod(ownerReferences=owned, annotations=classic))
    assert said.result is Result.INJECTED
    assert any("does not end by itself" in each for each in said.warnings)


def test_every_reason_by_which_pods_are_counted_is_documented() -> None:
    """In docs/metrics.md, at the metric."""
    lines = (ROOT / "docs" / "metrics.md").read_text("utf-8").splitlines()
    (line,) = [each for each in lines if each.startswith("| `meshwright_injection_pods_total`")]
    assert [each for each in (*Reason, *Cause) if f"`{each}`" not in line] == []
