"""The MutatingWebhookConfiguration: reviewed Pods, address of the webhook, and trusted roots.

A namespace requests sidecars by one label, and may select one of several control planes (its revision) by
another label. A Pod may have both labels too. Each Pod is reviewed once, because each webhook excludes the
selection of the others. `meshwright.kubernetes.injection.decision` decides about the reviewed Pods.
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
"""Names of the webhooks in one configuration.

NAMESPACE selects namespaces with our label, MONITORED namespaces with Open Service Mesh's label, POD Pods
with our label in namespaces without one, and EXCEPTION Pods whose label differs from the namespace's label.
"""

SECONDS: Final = 10
"""Seconds that an API server waits for an answer.

Afterwards the API server refuses the Pod, and the Pod's controller tries again.
"""

_NAME: Final = "kubernetes.io/metadata.name"

Expression = Mapping[str, Any]
Configuration = Mapping[str, Any]


def configuration(
    client: Mapping[str, object], ca: bytes, home: str, *, revision: str = "", mesh: str | None = ""
) -> Configuration:
    """Return the desired configuration, with the root certificates (PEM) of the webhook's server.

    `client` is the address of the webhook. `home` is the control plane's namespace. `home` and Kubernetes'
    own namespaces are excluded, because they must start without a mesh. `mesh` selects the namespaces of Open
    Service Mesh: the ones monitored by this mesh, or all of them if empty. With None the mesh's name is
    unknown, and the webhooks for these namespaces are left out, so that registered ones stay.
    """
    trusted = {**client, "caBundle": base64.b64encode(ca).decode("ascii")}
    outside = _not_in(_NAME, *sorted({*SYSTEM_NAMESPACES, home}))
    chosen = _chosen(revision, mesh)
    webhooks = [_webhook(name, trusted, [outside, *namespaces], pods) for name, namespaces, pods in chosen]
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata(revision, home)}
    return {**head, "webhooks": webhooks}


def _chosen(revision: str, mesh: str | None) -> Iterator[tuple[str, list[Expression], list[Expression]]]:
    """Yield the name of each webhook, with its selectors for the labels of namespaces and Pods."""
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
