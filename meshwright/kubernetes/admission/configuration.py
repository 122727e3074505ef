"""The ValidatingWebhookConfiguration: reviewed objects, address of the webhook, and trusted roots."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from meshwright.kubernetes.admission.place import Place
from meshwright.mesh.kinds import GATEWAY_API, MESH_CONFIG, NAMESPACE, SERVICE, Kind
from meshwright.specs import annotations
from meshwright.specs.kinds import READ
from meshwright.specs.manifest import CLUSTER_WIDE
from meshwright.specs.reference.crds import plural_of
from meshwright.specs.reference.meanings.definitions import INSTALLED

API_VERSION: Final = "admissionregistration.k8s.io/v1"
KIND: Final = "ValidatingWebhookConfiguration"
NAME: Final = "meshwright"
WEBHOOK: Final = "policy.meshwright.dev"
SETTINGS: Final = "meshconfig.meshwright.dev"
HOME: Final = "home.meshwright.dev"
"""Names of the webhooks in one configuration.

WEBHOOK reviews all kinds except MeshConfig, SETTINGS the MeshConfigs in the mesh's namespaces, and HOME the
MeshConfigs in the control plane's own namespace. Without a known own namespace WEBHOOK reviews all kinds.
"""

SECONDS: Final = 5
"""Seconds that an API server waits for an answer; afterwards the API server stores the object unreviewed."""

_NOT_KUBERNETES: Final = {
    "key": "kubernetes.io/metadata.name",
    "operator": "NotIn",
    "values": ["kube-node-lease", "kube-public", "kube-system"],
}
"""Selector that excludes Kubernetes' own namespaces: a cluster must be able to start without the webhook."""

_ALWAYS: Final = ("CREATE", "UPDATE")

REVIEWED: Final = (*INSTALLED, *(kind for kind in READ if kind.group == GATEWAY_API))
"""Kinds of reviewed policy. The Gateway API's definitions are not ours, so its objects only get warnings."""

Configuration = Mapping[str, Any]


def configuration(
    place: Place,
    ca: bytes,
    namespaces: Iterable[Mapping[str, object]] = (),
    home: str = "",
    revision: str = "",
) -> Configuration:
    """Return the desired configuration, with the root certificates (PEM) of the webhook's server.

    `namespaces` are the expressions of a LabelSelector, for example {"key": "mesh", "operator": "Exists"},
    and select the reviewed namespaces, without Kubernetes' own. `home` is the control plane's namespace: a
    MeshConfig there is in force whatever the labels of the namespace are, so a separate webhook reviews it,
    and each MeshConfig is reviewed once. If a cluster has several control planes, each `revision` has a
    configuration of its own.
    """
    trusted = {**place.client_config(), "caBundle": base64.b64encode(ca).decode("ascii")}
    scope = [_NOT_KUBERNETES, *namespaces]

    def webhook(
        name: str, rules: Iterable[Mapping[str, Any]], scope: Iterable[Mapping[str, object]]
    ) -> Mapping[str, Any]:
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "timeoutSeconds": SECONDS,
            "clientConfig": trusted,
            "namespaceSelector": {"matchExpressions": [*scope]},
            "rules": [*rules],
        }

    if not home:
        # No two of the three webhooks select the same object, because each would report the same problems
        # again.
        webhooks = [webhook(WEBHOOK, _rules(), scope)]
    else:
        webhooks = [
            webhook(WEBHOOK, _rules(kind for kind in REVIEWED if kind != MESH_CONFIG), scope),
            webhook(SETTINGS, _of_policy([MESH_CONFIG]), [*scope, _named("NotIn", home)]),
            webhook(HOME, _of_policy([MESH_CONFIG]), [_named("In", home)]),
        ]
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata(revision, home)}
    return {**head, "webhooks": webhooks}


def name_of(revision: str) -> str:
    """Return the name of a revision's configuration, for example `meshwright-canary`."""
    return f"{NAME}-{revision}" if revision else NAME


def metadata(revision: str, home: str) -> Mapping[str, Any]:
    """Return the name and the labels by which a webhook configuration is recognised as Meshwright's."""
    whose = {annotations.HOME: home} if home else {}
    labels = {"app.kubernetes.io/name": NAME, annotations.REVISION: revision, **whose}
    return {"name": name_of(revision), "labels": labels}


def is_of_a_control_plane(result: Mapping[str, Any]) -> bool:
    """Return whether a webhook configuration belongs to Meshwright, of any revision."""
    metadata = result["metadata"]
    return bool(metadata["name"] == name_of((metadata.get("labels") or {}).get(annotations.REVISION, "")))


def names_of(configuration: Configuration) -> frozenset[str]:
    """Return the names of a configuration's webhooks."""
    return frozenset(str(webhook["name"]) for webhook in configuration["webhooks"])


def _named(operator: str, namespace: str) -> Mapping[str, object]:
    return {"key": _NOT_KUBERNETES["key"], "operator": operator, "values": [namespace]}


def _rules(policy: Iterable[Kind] = REVIEWED) -> Iterator[Mapping[str, Any]]:
    """Yield the reviewed resources: policy, Services and Namespaces.

    Deletions of Namespaces are left out, because each deleted object in them is reviewed. Objects written by
    controllers, for example Pods and EndpointSlices, are left out too, because controllers ignore warnings.
    """
    yield from _of_policy(policy)
    yield _rule(SERVICE.group, READ[SERVICE].versions, ["services"], (*_ALWAYS, "DELETE"))
    yield _rule(NAMESPACE.group, READ[NAMESPACE].versions, ["namespaces"], _ALWAYS, "Cluster")


def _of_policy(policy: Iterable[Kind]) -> Iterator[Mapping[str, Any]]:
    together: dict[tuple[str, tuple[str, ...]], list[Kind]] = {}
    for kind in policy:
        together.setdefault((kind.group, READ[kind].versions), []).append(kind)
    for (group, versions), kinds in sorted(together.items()):
        for scope, is_wide in (("Namespaced", False), ("Cluster", True)):
            if some := [kind for kind in sorted(kinds) if (kind in CLUSTER_WIDE) is is_wide]:
                yield _rule(group, versions, map(plural_of, some), (*_ALWAYS, "DELETE"), scope)


def _rule(
    group: str,
    versions: tuple[str, ...],
    resources: Iterable[str],
    operations: tuple[str, ...],
    scope: str = "Namespaced",
) -> Mapping[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "resources": list(resources),
        "operations": list(operations),
        "scope": scope,
    }


def home_of(result: object) -> str:
    """Return the namespace of the control plane that owns a configuration, or an empty text if unknown."""
    match result:
        case {"metadata": {"labels": {annotations.HOME: str(home)}}}:
            return home
        # Without the label, the selector of the webhook HOME has the namespace.
        case {"webhooks": [*webhooks]}:
            return next((home for webhook in webhooks if (home := _home(webhook))), "")
        case _:
            return ""


def _home(webhook: object) -> str:
    match webhook:
        case {"name": name, "namespaceSelector": {"matchExpressions": [{"values": [str(home)]}]}}:
            return home if name == HOME else ""
        case _:
            return ""


def is_as(result: object, wanted: object) -> bool:
    """Return whether `result` contains all of `wanted`. Further fields belong to other clients.

    Webhooks are matched by their names, in any order.
    """
    match wanted:
        case dict():
            return isinstance(result, dict) and all(
                name in result and is_as(result[name], item) for name, item in wanted.items()
            )
        case [{"name": str()}, *_]:
            named = [item for item in _items(result) if isinstance(item, dict)]
            by_name = {item["name"]: item for item in named if isinstance(item.get("name"), str)}
            return all(is_as(by_name.get(item["name"]), item) for item in _items(wanted))
        case list():
            there = _items(result)
            return len(there) == len(wanted) and all(map(is_as, there, wanted))
        case _:
            return bool(result == wanted)


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
