"""Tests of the API errors: their messages and reasons."""

import pytest

from meshwright.kube.errors import ApiError, Reason

DENIED = 'endpointslices.discovery.k8s.io is forbidden: User "system:serviceaccount:mesh:plane" cannot list resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope'  # noqa: E501


@pytest.mark.parametrize(
    ("status", "reason", "message", "named", "expected", "sentence"),
    [
        (403, "Forbidden", DENIED, False, Reason.FORBIDDEN,
         "may not list X: RBAC grants no `list` on `Y` to system:serviceaccount:mesh:plane"),
        (403, "Forbidden", 'admission webhook "w" denied the request: no', True, Reason.FORBIDDEN,
         'may not list X: admission webhook "w" denied the request: no'),
        (401, "Unauthorized", "Unauthorized", False, Reason.UNAUTHORIZED,
         ("cannot list X: the API server rejects the credentials (401: Unauthorized): check the token or "
          "certificate of the kubeconfig or ServiceAccount")),
        (404, "NotFound", 'services "cart" not found', True, Reason.NOT_FOUND,
         'cannot list X: services "cart" not found (404)'),
        (404, "NotFound", "the server could not find the requested resource", True, Reason.NOT_SERVED,
         "cannot list X: the API server does not serve Y (404)"),
        (404, "", "404 page not found", True, Reason.NOT_SERVED,
         "cannot list X: the API server does not serve Y (404)"),
        (409, "Conflict", "Apply failed with 1 conflict", True, Reason.CONFLICT,
         "cannot list X: Apply failed with 1 conflict (409)"),
        (410, "Gone", "", True, Reason.GONE, "cannot list X: Gone (410)"),
        (500, "Expired", "too old", True, Reason.GONE, "cannot list X: too old (500)"),
        (422, "Invalid", "x is invalid", True, Reason.INVALID, "cannot list X: x is invalid (422)"),
        (429, "", "", True, Reason.THROTTLED, "cannot list X: the reason is not given (429)"),
        (504, "Timeout", "etcd", True, Reason.TIMEOUT, "cannot list X: etcd (504)"),
        (503, "", "upstream\x1b[31m\n connect error", True, Reason.SERVER,
         "cannot list X: upstream [31m connect error (503)"),
        (418, "", "teapot", True, Reason.REFUSED, "cannot list X: teapot (418)"),
        (413, "", "large", True, Reason.TOO_LARGE, "cannot list X: large (413)"),
    ],
)  # fmt: skip
def test_refusal_names_verb_resource_and_missing_grant(
    status: int, reason: str, message: str, named: bool, expected: Reason, sentence: str
) -> None:
    """The reason follows status and text of the answer."""
    error = ApiError(status, reason, message, verb="list", resource="Y", object_text="X", named=named)
    assert (error.reason, str(error)) == (expected, sentence)


def test_long_message_of_a_server_is_shortened() -> None:
    """The message is one line of fewer than 400 characters."""
    error = ApiError(500, "", "x\n" * 100_000, verb="list", resource="Y", object_text="X")
    assert len(str(error)) < 400
    assert "\n" not in str(error)


def test_status_object_of_a_watch_is_read_as_an_answer() -> None:
    """Malformed fields have defaults, and the retry time is limited to a day."""
    answer = {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 3}}
    error = ApiError.from_status(answer, verb="watch", resource="Y", object_text="X")
    assert (error.status, error.retry_after, error.reason) == (429, 3.0, Reason.THROTTLED)
    error = ApiError.from_status(
        {"code": "x", "details": 5, "message": []}, verb="watch", resource="Y", object_text="X"
    )
    assert (error.status, error.retry_after) == (500, None)
    error = ApiError.from_status(
        {"details": {"retryAfterSeconds": 10**400}}, verb="watch", resource="Y", object_text="X"
    )
    assert error.retry_after == 86400


def test_write_to_a_terminating_namespace_counts_as_not_found() -> None:
    """The API server answers 403, although no right is missing. Only for writes can the text mean this."""
    text = "unable to create new content in namespace shop because it is being terminated"
    errors = (
        ApiError(403, "Forbidden", text, verb=item, resource="Y", object_text="X")
        for item in ("create", "patch", "list")
    )
    assert [error.reason for error in errors] == [Reason.NOT_FOUND, Reason.NOT_FOUND, Reason.FORBIDDEN]
