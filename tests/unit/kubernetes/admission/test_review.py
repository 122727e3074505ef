"""Tests of AdmissionReview: requests as an API server sends them, malformed requests, and answers."""

from typing import Any

import pytest

from meshwright.kubernetes.admission.review import BadReviewError, Operation, answered, parse_review
from meshwright.mesh.kinds import TCP_ROUTE
from meshwright.mesh.objects import ObjectKey

ROUTE: dict[str, Any] = {
    "apiVersion": "specs.smi-spec.io/v1alpha4",
    "kind": "TCPRoute",
    "metadata": {"name": "any", "namespace": "shop"},
    "spec": {},
}


def review(**request: Any) -> dict[str, Any]:
    """Return a review of a new TCPRoute, with changes to its request."""
    given = {"uid": "7", "operation": "CREATE", "namespace": "shop", "object": ROUTE, **request}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": given}


def test_request_has_the_new_and_the_old_object() -> None:
    """The parsed request has the object after the update and the object before it."""
    result = parse_review(review(operation="UPDATE", oldObject={**ROUTE, "spec": None}, dryRun=True))
    assert (result.uid, result.operation) == ("7", Operation.UPDATE)
    assert (result.document, result.before) == (ROUTE, {**ROUTE, "spec": None})
    assert result.key == ObjectKey(TCP_ROUTE, "shop", "any")  # type: ignore[arg-type]


def test_deletion_has_only_the_old_object() -> None:
    """A DELETE request has no new object, and its key is that of `oldObject`."""
    result = parse_review(review(operation="DELETE", object=None, oldObject=ROUTE))
    assert (result.document, result.before) == (None, ROUTE)
    assert (result.kind, str(result.key)) == (TCP_ROUTE, "TCPRoute shop/any")


def test_object_may_lack_its_name_and_namespace() -> None:
    """With `generateName` a placeholder completes the name, and the namespace is that of the request."""
    result = parse_review(review(object={**ROUTE, "metadata": {"generateName": "any-"}}))
    assert str(result.key) == "TCPRoute shop/any-x"
    assert str(
        parse_review(review(object={**ROUTE, "metadata": {"generateName": "a-"}}, name="a-b2")).key
    ).endswith("/a-b2")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ([], "must be an AdmissionReview of admission.k8s.io/v1"),
        ({"kind": "Status"}, "must be an AdmissionReview"),
        (
            {**review(), "apiVersion": "admission.k8s.io/v1beta1"},
            "apiVersion is admission.k8s.io/v1beta1: must be",
        ),
        ({**review(), "request": None}, "request is missing"),
        (review(uid=""), "request.uid is missing"),
        (review(uid=7), "request.uid is missing"),
        (review(operation="CONNECT"), "request.operation is CONNECT: must be one of CREATE, UPDATE, DELETE"),
        (review(object=None), "request.object is missing"),
        (review(object="x"), "request.object must be an object"),
        (review(operation="DELETE"), "request.oldObject is missing"),
    ],
)
def test_malformed_review_is_refused_with_the_field_at_fault(body: object, sentence: str) -> None:
    """The error names the wrong field and its expected content."""
    with pytest.raises(BadReviewError, match=sentence):
        parse_review(body)


def test_answer_allows_with_warnings_or_refuses_with_a_message() -> None:
    """The answers have the shape that an API server requires."""
    whole = answered("7", warnings=("look",))
    assert (whole["apiVersion"], whole["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert whole["response"] == {"uid": "7", "allowed": True, "warnings": ["look"]}
    assert answered("7", refused="no")["response"] == {
        "uid": "7",
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "no"},
    }
