"""Pods and their controllers: whether injection works, and which Pods still have OSM's sidecar."""

from collections.abc import Iterator, Mapping
from typing import Final

from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, mapping, named
from meshwright.cli.migrating.namespaces import PREFIX
from meshwright.cli.migrating.objects import group_of
from meshwright.kubernetes.injection.decision import OSM_INJECT, OSM_UUID
from meshwright.kubernetes.injection.manifests import TEMPLATES, inject
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.mesh.kinds import POD
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.injection.checks import all_containers
from meshwright.sidecars.injection.context import EXCLUDED_RANGES, INCLUDED_RANGES, OUTBOUND_PORTS
from meshwright.sidecars.injection.names import INBOUND_PORTS

_READ: Final = frozenset({EXCLUDED_RANGES, INBOUND_PORTS, INCLUDED_RANGES, OUTBOUND_PORTS, OSM_INJECT})
_INIT: Final = "osm-init"


def makes_pods(document: Document) -> bool:
    """Return whether an object is a Pod or creates Pods."""
    return (group_of(document), str(document.get("kind"))) in TEMPLATES


def of_pods(
    known: InjectionInputs, namespaces: Mapping[str, NamespaceObject], document: Document
) -> Iterator[Finding]:
    """Yield findings about a Pod or controller that belongs to OSM by its namespace or annotations."""
    pod = _pod(document)
    if _has_osm(pod):
        yield _restart(document)
        return
    what, metadata = named(document), mapping(pod.get("metadata"))
    ours = [key for key in sorted(mapping(metadata.get("annotations"))) if key.startswith(PREFIX)]
    yield from (
        Finding(what, MigrationStatus.UNUSED, "Meshwright does not use this", f"metadata.annotations.{key}")
        for key in ours
        if key not in _READ
    )
    namespace = mapping(document.get("metadata")).get("namespace")
    if not ours and str(namespace) not in namespaces:
        return
    for said in inject(known, namespaces, document, "default").results:
        if said.failed:
            yield Finding(what, MigrationStatus.REFUSED, said.why)
        elif ours:
            yield Finding(
                what, MigrationStatus.WORKS, f"{'injected' if said.changed else 'left alone'}: {said.why}"
            )


def _pod(document: Document) -> Document:
    result = document
    for name in TEMPLATES[group_of(document), str(document.get("kind"))]:
        result = mapping(result.get(name))
    return result


def _has_osm(pod: Document) -> bool:
    if OSM_UUID in mapping(mapping(pod.get("metadata")).get("labels")):
        return True
    containers = mapping(pod.get("spec"))
    # Manifests from files may have any shape; the API server has not checked them.
    if not all(isinstance(containers.get(item) or [], list) for item in ("containers", "initContainers")):
        return False
    return any(mapping(container).get("name") == _INIT for container in all_containers(pod))  # type: ignore[arg-type]


def _restart(document: Document) -> Finding:
    text = (
        "has Open Service Mesh's sidecar, which trusts another root, and stays unchanged until it is "
        "recreated"
    )
    owners = mapping(document.get("metadata")).get("ownerReferences")
    owner = mapping(owners[0]) if isinstance(owners, list) and owners else {}
    of = f" by its {owner.get('kind')} {owner.get('name')}" if owner else ""
    do = (
        f"recreate it{of} (`kubectl rollout restart`), together with its callers and the workloads "
        "that it calls"
    )
    if document.get("kind") != POD.name:
        do = "remove the label and the containers from the template, where they were added by hand"
    return Finding(named(document), MigrationStatus.TO_DO, text, do=do)
