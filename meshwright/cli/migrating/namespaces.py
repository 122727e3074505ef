"""Namespaces: whether their Pods get a sidecar, in Open Service Mesh and in Meshwright."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from meshwright.cli.migrating import objects
from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, mapping, named
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.decision import OSM_IGNORE, OSM_INJECT, OSM_MONITORED, decide
from meshwright.kubernetes.injection.namespaces import namespace_of
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.specs.annotations import INJECT

PREFIX: Final = "openservicemesh.io/"
_READ: Final = frozenset({OSM_IGNORE, OSM_INJECT, OSM_MONITORED})
_ANY: Final[Pod] = {"spec": {"containers": [{"name": "any", "image": "any"}]}}
"""A Pod without labels and annotations."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label that a Namespace must get.

    The label is set by `kubectl label`. A manifest with this label alone would be applied by the field
    manager that owns the Namespace's other labels, and the API server would delete those other labels.
    """

    namespace: str
    key: str
    value: str

    @property
    def command(self) -> str:
        """Return the command that sets the label and keeps all others."""
        return shlex.join(
            ["kubectl", "label", "--overwrite", "namespace", self.namespace, f"{self.key}={self.value}"]
        )


def meshes(documents: Iterable[Document]) -> tuple[str, ...]:
    """Return the names of the meshes in the namespaces' label openservicemesh.io/monitored-by."""
    labels = (mapping(mapping(document.get("metadata")).get("labels")) for document in documents)
    named = (label.get(OSM_MONITORED) for label in labels)
    return tuple(sorted({item for item in named if isinstance(item, str)}))


def is_of_osm(namespace: NamespaceObject) -> bool:
    """Return whether a namespace has a label or annotation of Open Service Mesh."""
    return any(key.startswith(PREFIX) for key, _ in (*namespace.labels, *namespace.annotations))


def of_namespace(config: InjectionConfig, document: Document) -> tuple[tuple[Finding, ...], Label | None]:
    """Return findings for a namespace of OSM, and the needed label; other namespaces have neither."""
    namespace = namespace_of(document)
    if not is_of_osm(namespace):
        return (), None
    refused = tuple(item for item in objects.of_object(document) if item.standing is MigrationStatus.REFUSED)
    if refused:
        return refused, None
    unread = tuple(
        Finding(
            named(document),
            MigrationStatus.UNUSED,
            f"{value!r}: Meshwright does not use this",
            f"metadata.{where}.{key}",
        )
        for where, pairs in (("labels", namespace.labels), ("annotations", namespace.annotations))
        for key, value in pairs
        if key.startswith(PREFIX) and key not in _READ
    )
    finding, label = _injected(config, document, namespace)
    return (finding, *unread), label


def _injected(
    config: InjectionConfig, document: Document, namespace: NamespaceObject
) -> tuple[Finding, Label | None]:
    what = named(document)
    try:
        here = decide(config, namespace, _ANY)
    except CannotPatchError as error:
        return Finding(what, MigrationStatus.REFUSED, str(error)), None
    if here.inject and not _requests_sidecars(namespace):
        text = (
            "is in the mesh, but only Pods with their own annotation had a sidecar, because "
            f"{OSM_INJECT} is missing; the label {INJECT} has the same effect here"
        )
        label = Label(str(namespace.name), INJECT, "false")
        do = f"`{label.command}`, and the same label in the Namespace's manifest"
        return Finding(what, MigrationStatus.REWRITTEN, text, f"metadata.labels.{INJECT}", do=do), label
    text = f"pods get {'a' if here.inject else 'no'} sidecar: {here.words}"
    return Finding(what, MigrationStatus.WORKS, text), None


def _requests_sidecars(namespace: NamespaceObject) -> bool:
    """Return whether a namespace requests sidecars; in Open Service Mesh, monitoring alone injects none."""
    return OSM_INJECT in dict(namespace.annotations) or INJECT in dict(namespace.labels)
