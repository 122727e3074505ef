"""Labels and annotations of a Namespace for injection, readable even if other parts are invalid."""

from collections.abc import Mapping
from typing import Any

from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject


def namespace_of(document: Mapping[str, Any]) -> NamespaceObject:
    """Return a namespace with its labels and annotations; malformed ones count as empty.

    The regular parsers refuse a namespace with such a fault, but its Pods are reviewed nevertheless.
    """
    metadata = _mapping(document.get("metadata"))
    labels, annotations = (_pairs(metadata, item) for item in ("labels", "annotations"))
    return NamespaceObject(Namespace(str(metadata.get("name", ""))), labels, annotations)


def _pairs(metadata: Mapping[str, Any], name: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(key), str(value)) for key, value in _mapping(metadata.get(name)).items()))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
