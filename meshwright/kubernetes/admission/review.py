"""AdmissionReview (admission.k8s.io/v1): an API server's request about one object, and the response."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.specs.manifest import key_of, split_api_version

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

_NOT_YET: Final = "x"
"""Placeholder for the characters that the API server will append to `metadata.generateName`."""

Document = Mapping[str, object]


class BadReviewError(ValueError):
    """A request body is not a usable AdmissionReview; the message is one sentence for the client."""


class Operation(enum.StrEnum):
    """Operation of the client on the reviewed object: creation, update or deletion."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Review:
    """A request about one object.

    `document` is the object after the operation, or None for a deletion. `before` is the stored object, or
    None for a creation. With `dry_run` nothing is stored.

    `client` is the client that the API server acts for, for example `namespace shop` or `user admin`. Clients
    share the webhook's time evenly. The object's namespace is the client, because controllers create the Pods
    of all namespaces as one user; objects without a namespace count for their user.
    """

    uid: str
    operation: Operation
    document: Document | None
    before: Document | None = None
    dry_run: bool = False
    client: str = ""

    @property
    def kind(self) -> Kind:
        """Return the kind of the reviewed object."""
        shown = self._shown
        return Kind(str(shown.get("kind", "")), split_api_version(str(shown.get("apiVersion", "")))[0])

    @property
    def key(self) -> ObjectKey | None:
        """Return the key of the reviewed object, or None if the object has no usable name."""
        return key_of(self.kind, self._shown)

    @property
    def _shown(self) -> Document:
        return self.document or self.before or {}


def parse_review(body: object) -> Review:
    """Parse an AdmissionReview. Raises BadReviewError, which names the wrong field."""
    if not isinstance(body, Mapping) or body.get("kind") != KIND:
        raise BadReviewError(f"the body must be an {KIND} of {API_VERSION}")
    if body.get("apiVersion") != API_VERSION:
        raise BadReviewError(f"apiVersion is {str(body.get('apiVersion'))[:80]}: must be {API_VERSION}")
    request = body.get("request")
    if not isinstance(request, Mapping):
        raise BadReviewError("request is missing")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadReviewError("request.uid is missing")
    try:
        operation = Operation(str(request.get("operation")))
    except ValueError:
        allowed = ", ".join(Operation)
        text = str(request.get("operation"))[:80]
        raise BadReviewError(f"request.operation is {text}: must be one of {allowed}") from None
    document, before = (_object(request, name) for name in ("object", "oldObject"))
    if (before if operation is Operation.DELETE else document) is None:
        missing = "oldObject" if operation is Operation.DELETE else "object"
        raise BadReviewError(f"request.{missing} is missing")
    document = None if operation is Operation.DELETE or document is None else _named(document, request)
    dry_run = request.get("dryRun") is True
    return Review(uid, operation, document, before, dry_run=dry_run, client=_client(request))


def answered(uid: str, *, refused: str = "", warnings: Sequence[str] = ()) -> Mapping[str, object]:
    """Return the response: `refused` is the reason for a refusal, or empty if the object may be stored."""
    response: dict[str, object] = {"uid": uid, "allowed": not refused}
    if refused:
        response["status"] = {"code": 422, "reason": "Invalid", "message": refused}
    if warnings:
        response["warnings"] = list(warnings)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _client(request: Mapping[str, object]) -> str:
    """Return the client that caused a review, as in `Review.client`."""
    if namespace := request.get("namespace"):
        return f"namespace {namespace!s:.253}"
    user = request.get("userInfo")
    return f"user {user.get('username')!s:.253}" if isinstance(user, Mapping) else ""


def _object(request: Mapping[str, object], name: str) -> Document | None:
    result = request.get(name)
    if result is None:
        return None
    if not isinstance(result, Mapping):
        raise BadReviewError(f"request.{name} must be an object")
    return result


def _named(document: Document, request: Mapping[str, object]) -> Document:
    """Return an object with its final name and namespace, which the manifest itself need not have."""
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return document
    result = dict(metadata)
    if not result.get("name") and isinstance(prefix := result.get("generateName"), str) and prefix:
        result["name"] = request.get("name") or f"{prefix}{_NOT_YET}"
    if not result.get("namespace") and (namespace := request.get("namespace")):
        result["namespace"] = namespace
    return {**document, "metadata": result}
