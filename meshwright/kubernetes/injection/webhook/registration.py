"""The MutatingWebhookConfiguration: of which pods an API server asks, where, and whom it trusts.

A namespace says by one label that its pods are to have sidecars, and may say by another which of several
control planes, its revision, puts them in; a pod may say both itself. Each pod is asked about once: what one
webhook selects the others leave out. `meshwright.kubernetes.injection.decision` decides, of those that come.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from meshwright.kubernetes.admission.configuration import API_VERSION, metadata
from meshwright.kubernetes.injection.decision import OSM_IGNORE, OSM_MONITORED, SYSTEM_NAMESPACES
from meshwright.specs.annotations import INJECT, REVISION

KIND: Final = "MutatingWebhookConfiguration"
PATH: Final = "/inject"

NAMESPACE: Final = "namespace.inject.meshwright.dev"
MONITORED: Final = "monitored.inject.meshwright.dev"
POD: Final = "pod.inject.meshwright.dev"
EXCEPTION: Final = "exception.inject.meshwright.dev"
"""The webhooks: of namespaces with our label, of those with Open Service Mesh's, of pods that say so where
their namespace says nothing, and of those that say otherwise than it."""

SECONDS: Final = 10
"""How long an API server waits for an answer; then the pod is not made, and who makes it tries again."""

_NAME: Final = "kubernetes.io/metadata.name"

Expression = Mapping[str, Any]
Configuration = Mapping[str, Any]


def configuration(
    client: Mapping[str, object], ca: bytes, home: str, *, revision: str = "", mesh: str | None = ""
) -> Configuration:
    """Return the object as it should be, with the roots (PEM) that certify the webhook's server.

    `client` is where API servers reach it, and `home` the control plane's own namespace, which is left out as
    are Kubernetes' own: both must come up without a mesh. Of Open Service Mesh's namespaces those of `mesh`
    are ours; empty, all of them; None, where that is not known, none: what is registered of them stays.
    """
    trusted = {**client, "caBundle": base64.b64encode(ca).decode("ascii")}
    outside = _not_in(_NAME, *sorted({*SYSTEM_NAMESPACES, home}))
    chosen = _chosen(revision, mesh)
    webhooks = [_webhook(name, trusted, [outside, *namespaces], pods) for name, namespaces, pods in chosen]
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata(revision, home)}
    return {**head, "webhooks": webhooks}


def _chosen(revision: str, mesh: str | None) -> Iterator[tuple[str, list[Expression], list[Expression]]]:
    """Yield of each webhook its name, and what namespaces and pods must be for it, by their labels."""
    may = _not_in(INJECT, "false")
    no_revision, no_word = _absent(REVISION), _absent(INJECT)
    if revision:
        ours = _in(REVISION, revision)
        yield NAMESPACE, [ours, may], [no_revision, may]
        yield EXCEPTION, [ours, _in(INJECT, "false")], [no_revision, _in(INJECT, "true")]
        yield POD, [], [_in(REVISION, revision), may]
        return
    monitored = _in(OSM_MONITORED, mesh) if mesh else _present(OSM_MONITORED)
    others = _not_in(OSM_MONITORED, mesh) if mesh else _absent(OSM_MONITORED)
    yield NAMESPACE, [_in(INJECT, "true"), no_revision], [no_revision, may]
    says_so = [_in(INJECT, "true"), no_revision]
    if mesh is not None:
        yield MONITORED, [monitored, _absent(OSM_IGNORE), no_word, no_revision], [no_revision, may]
        yield POD, [no_word, others, no_revision], says_so
    yield EXCEPTION, [_present(INJECT), _not_in(INJECT, "true"), no_revision], says_so


def _webhook(
    name: str, trusted: Mapping[str, object], namespaces: list[Expression], pods: list[Expression]
) -> Mapping[str, Any]:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun",
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "IfNeeded",
        "timeoutSeconds": SECONDS,
        "clientConfig": trusted,
        "namespaceSelector": {"matchExpressions": namespaces},
        "objectSelector": {"matchExpressions": pods},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
                "scope": "Namespaced",
            }
        ],
    }


def _in(key: str, value: str) -> Expression:
    return {"key": key, "operator": "In", "values": [value]}


def _not_in(key: str, *values: str) -> Expression:
    return {"key": key, "operator": "NotIn", "values": list(values)}


def _present(key: str) -> Expression:
    return {"key": key, "operator": "Exists"}


def _absent(key: str) -> Expression:
    return {"key": key, "operator": "DoesNotExist"}
