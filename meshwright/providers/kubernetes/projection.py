"""Reduction of an object to the fields that its reader uses, as text.

A Pod has about four hundred fields and is written every few seconds, but its used fields rarely change. The
text is JSON with sorted keys, and equal texts give equal readings. A heartbeat or an unrelated status is
therefore not a change, and thousands of objects take little memory. Policies are small, and are stored
without status and without fields for the API server only.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from meshwright.mesh.kinds import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from meshwright.specs.core.config_maps import CA_ENTRY
from meshwright.specs.core.endpoints import READY, SERVICE_LABEL
from meshwright.specs.core.secrets import CERTIFICATE_ENTRY, KEY_ENTRY
from meshwright.specs.core.services import TOPOLOGY_ANNOTATIONS
from meshwright.specs.own_names import is_own
from meshwright.specs.own_values import OSM

Document = Mapping[str, object]
Keep = Callable[[object], object]
"""Function from the value of a field to the stored part."""
Kept = Mapping[str, "Keep"]

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OTHERS: Final = frozenset({"managedFields", "resourceVersion", "selfLink"})
"""Fields of metadata that change with every write, or have no information."""


def _whole(value: object) -> object:
    return value


def _fields(**kept: Keep) -> Keep:
    """Keep these fields of a mapping, and of each mapping in a list; other values stay unchanged."""

    def keep(value: object) -> object:
        if isinstance(value, dict):
            return {name: item(value[name]) for name, item in kept.items() if name in value}
        return [keep(item) for item in value] if isinstance(value, list) else value

    return keep


def _named(wanted: Callable[[str], bool]) -> Keep:
    """Return a mapping with only the entries of wanted names."""

    def keep(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: item for name, item in value.items() if not isinstance(name, str) or wanted(name)}

    return keep


def _conditions(value: object) -> object:
    """Keep only the condition Ready of a Pod, because the others change often and are not used."""
    if not isinstance(value, list):
        return value
    kept = _fields(type=_whole, status=_whole)
    good = all(map(_is_condition, value))
    return [kept(item) for item in value if not good or item["type"] == READY]


def _is_condition(value: object) -> bool:
    """Return whether a value is a valid condition.

    If one is invalid, all conditions are kept, so that the reader can report its index in the list.
    """
    if not isinstance(value, dict):
        return False
    status = value.get("status")
    return isinstance(value.get("type"), str) and (status is None or isinstance(status, str))


_OWN: Final = _named(is_own)
_OWN_OR_OSM: Final = _named(lambda name: is_own(name) or name.startswith(OSM))
_NAMES: Final[Kept] = {"name": _whole, "namespace": _whole}
_PORTS: Final = _fields(
    name=_whole, port=_whole, protocol=_whole, appProtocol=_whole, targetPort=_whole, containerPort=_whole
)
_CONTAINERS: Final = _fields(ports=_PORTS, restartPolicy=_whole)

_CORE: Final[Mapping[Kind, Keep]] = {
    NAMESPACE: _fields(metadata=_fields(**_NAMES, labels=_whole, annotations=_named(_LAST_APPLIED.__ne__))),
    SERVICE_ACCOUNT: _fields(metadata=_fields(**_NAMES, labels=_OWN, annotations=_OWN)),
    SERVICE: _fields(
        metadata=_fields(
            **_NAMES,
            labels=_OWN,
            annotations=_named(lambda name: is_own(name) or name in TOPOLOGY_ANNOTATIONS),
            creationTimestamp=_whole,
        ),
        spec=_fields(
            type=_whole,
            clusterIP=_whole,
            clusterIPs=_whole,
            selector=_whole,
            ports=_PORTS,
            publishNotReadyAddresses=_whole,
            internalTrafficPolicy=_whole,
            sessionAffinity=_whole,
            trafficDistribution=_whole,
            externalIPs=_whole,
        ),
        status=_fields(loadBalancer=_whole),
    ),
    POD: _fields(
        metadata=_fields(
            **_NAMES,
            uid=_whole,
            labels=_whole,
            annotations=_OWN_OR_OSM,
            creationTimestamp=_whole,
            deletionTimestamp=_whole,
        ),
        spec=_fields(
            serviceAccountName=_whole,
            serviceAccount=_whole,
            hostNetwork=_whole,
            nodeName=_whole,
            containers=_CONTAINERS,
            initContainers=_CONTAINERS,
        ),
        status=_fields(phase=_whole, podIP=_whole, podIPs=_whole, conditions=_conditions),
    ),
    SECRET: _fields(
        metadata=_fields(**_NAMES),
        type=_whole,
        data=_named(frozenset({CERTIFICATE_ENTRY, KEY_ENTRY}).__contains__),
    ),
    CONFIG_MAP: _fields(
        metadata=_fields(**_NAMES), data=_named(CA_ENTRY.__eq__), binaryData=_named(CA_ENTRY.__eq__)
    ),
    ENDPOINT_SLICE: _fields(
        metadata=_fields(
            **_NAMES,
            labels=_named(lambda name: name == SERVICE_LABEL or is_own(name)),
            annotations=_OWN,
        ),
        addressType=_whole,
        endpoints=_fields(
            addresses=_whole,
            conditions=_fields(ready=_whole, serving=_whole, terminating=_whole),
            zone=_whole,
        ),
        ports=_PORTS,
    ),
}


def _policy(document: object) -> object:
    if not isinstance(document, dict):
        return document
    kept = {name: item for name, item in document.items() if name != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        slim = {name: item for name, item in metadata.items() if name not in _OTHERS}
        if "annotations" in slim:
            slim["annotations"] = _named(_LAST_APPLIED.__ne__)(slim["annotations"])
        kept["metadata"] = slim
    return kept


def projected(kind: Kind, api_version: str, document: Document) -> str:
    """Return the stored text of an object, with apiVersion and kind, which items of lists lack."""
    kept = _CORE.get(kind, _policy)(dict(document))
    head = {"apiVersion": api_version, "kind": kind.name}
    return json.dumps(
        {**kept, **head} if isinstance(kept, dict) else kept, sort_keys=True, separators=(",", ":")
    )
