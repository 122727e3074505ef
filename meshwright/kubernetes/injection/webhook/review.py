"""The answer to a review of a Pod: a JSON patch (RFC 6902), an unchanged Pod, or a refusal."""

import base64
import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from meshwright.kubernetes.admission.turns import Check, unhurried
from meshwright.kubernetes.injection.decision import Reason
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError, DriverError
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.injection.names import REASON_ANNOTATION
from meshwright.sidecars.injection.patching import MOST_ANNOTATED
from meshwright.sidecars.injection.restoration import is_patched

DECISION: Final = "injection"
"""Audit annotation with the decision; the API server puts the webhook's name before it."""

_REPLACED: Final = ("annotations", "labels")
_ENDING: Final = "Job"


class Result(enum.StrEnum):
    """Outcome of a review for a Pod: injected, unchanged, skipped or refused."""

    INJECTED = "injected"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REFUSED = "refused"


class Cause(enum.StrEnum):
    """Reason why a Pod was refused or left without a sidecar before any rule could decide."""

    CANNOT = "cannot-have-one"
    NO_CONFIGURATION = "no-configuration"
    NO_NAMESPACE = "namespace-unknown"
    NO_SECRET = "no-secret"  # noqa: S105 - a word
    LATE = "late"
    FAULT = "fault"
    NO_POD = "not-a-new-pod"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a review: outcome, explanation, the rule or cause, and the patch.

    `patch` has the operations of a JSON patch. A refused Pod is not created. `needs` is the proxy whose
    certificate must be in a Secret before the Pod is created.
    """

    result: Result
    words: str
    reason: Reason | Cause
    patch: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    needs: ProxyName | None = None


def answer(
    known: InjectionInputs,
    namespace: NamespaceObject,
    document: Mapping[str, object],
    check: Check = unhurried,
    *,
    ends: bool = False,
) -> Answer:
    """Decide about a new Pod, and return the answer.

    `check` and `ends` have the same meaning as for `injected`.
    """
    try:
        pod = checked(document)
        check()
        pod_injection = injected(known, namespace, pod, ends=ends or _ends(document), check=check)
    except (CannotPatchError, DriverError) as error:
        return Answer(Result.REFUSED, " ".join(str(error).split()), Cause.CANNOT)
    decision = pod_injection.decision
    if pod_injection.pod is None:
        patch = tuple(operations(document, _noted(document, pod, decision.words)))
        return Answer(Result.SKIPPED, decision.words, decision.reason, patch)
    patch = tuple(operations(document, cast("Mapping[str, Any]", pod_injection.pod)))
    result = Result.INJECTED if patch else Result.UNCHANGED
    return Answer(result, decision.words, decision.reason, patch, pod_injection.warnings, pod_injection.needs)


def operations(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the operations that change one Pod into the other: annotations, labels and fields of the spec.

    Each changed field is replaced as a whole; `add` replaces an existing field (RFC 6902). Other parts of a
    Pod must not change by injection. For example `{"op": "add", "path": "/spec/containers", "value": [...]}`.
    """
    was, now = before.get("metadata") or {}, after.get("metadata") or {}
    if "metadata" not in before:
        yield _add("/metadata", {})
    for field in _REPLACED:
        if now.get(field) != was.get(field) and field in now:
            yield _add(f"/metadata/{field}", now[field])
    was, now = before.get("spec") or {}, after.get("spec") or {}
    for field in sorted(was.keys() | now.keys()):
        if field not in now:
            yield {"op": "remove", "path": f"/spec/{field}"}
        elif field not in was or now[field] != was[field]:
            yield _add(f"/spec/{field}", now[field])


def response(uid: str, decision: Answer) -> Mapping[str, object]:
    """Return the `response` of an AdmissionReview, with the review's `uid`."""
    words = f"{decision.result}: {decision.words}"
    result: dict[str, object] = {
        "uid": uid,
        "allowed": decision.result is not Result.REFUSED,
        "auditAnnotations": {DECISION: words},
    }
    if decision.result is Result.REFUSED:
        refused = f"this pod must have a sidecar, but the sidecar cannot be injected: {decision.words}"
        result["status"] = {"code": 422, "reason": "Invalid", "message": refused}
    if decision.patch:
        result["patchType"] = "JSONPatch"
        result["patch"] = base64.b64encode(json.dumps(decision.patch).encode()).decode("ascii")
    if decision.warnings:
        result["warnings"] = list(decision.warnings)
    return result


def _noted(document: Mapping[str, Any], pod: Pod, words: str) -> Mapping[str, Any]:
    """Return a Pod without a sidecar, with the reason in an annotation."""
    metadata = document.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), REASON_ANNOTATION: f"none: {words}"}
    size = sum(len(name.encode()) + len(annotation.encode()) for name, annotation in annotations.items())
    if is_patched(pod) or size > MOST_ANNOTATED:
        return document  # the Pod has a sidecar from an injection by hand, or its annotations have no room
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _add(path: str, value: object) -> Mapping[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _ends(document: Mapping[str, object]) -> bool:
    """Return whether a Job has created the Pod."""
    metadata = document.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return any(
        isinstance(owner, Mapping) and owner.get("kind") == _ENDING
        for owner in (owners if isinstance(owners, list) else ())
    )
