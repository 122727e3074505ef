"""Migration of a whole mesh of Open Service Mesh: findings, manifests, labels and values."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from catalog.lint.codes import Code
from meshwright.cli.errors import CommandFailed
from meshwright.cli.migrating import cross_object as together
from meshwright.cli.migrating import gateways, installation, namespaces, objects, pods
from meshwright.cli.migrating.findings import LOST, Document, Finding, MigrationStatus, mapping, named
from meshwright.cli.migrating.mesh_config import MeshConfigMigration, configured
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, InjectionConfig
from meshwright.kubernetes.injection.configuration.configuration import read as read_configuration
from meshwright.kubernetes.injection.decision import OSM_MONITORED
from meshwright.kubernetes.injection.namespaces import namespace_of
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.mesh.kinds import CONFIG_MAP, MESH_CONFIG, NAMESPACE
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.selection import INIT_VARIABLE, LINUX_VARIABLE
from meshwright.specs.osm.unenforced_policy import PRESETS

_PRESET: Final = f"{PRESETS}.json"
_IMAGES: Final = {LINUX_VARIABLE: "proxy", INIT_VARIABLE: "proxy"}
"""Placeholder images, because a sidecar's image does not affect whether a Pod can be injected."""


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """Findings, rewritten manifests, labels for Namespaces, and values for the chart."""

    findings: tuple[Finding, ...]
    manifests: tuple[Document, ...]
    labels: tuple[namespaces.Label, ...]
    values: Mapping[str, Any]


def moved(
    documents: Iterable[Document],
    drivers: Mapping[str, SidecarDriver],
    home: str,
    mesh: str = "",
    *,
    whole: bool = False,
) -> MigrationResult:
    """Migrate objects; `home` is the control plane's namespace, `mesh` is OSM's name of the mesh.

    `whole`: the objects are all objects of a cluster.

    Raises CommandFailed if namespaces belong to several meshes and `mesh` is empty.
    """
    given = list(documents)
    of_kind = [
        item for item in given if item.get("kind") == NAMESPACE.name and item.get("apiVersion") == "v1"
    ]
    mesh = mesh or _only(namespaces.meshes(of_kind))
    settled = _settled(_mesh_configs(given), home)
    values = _values(mesh, settled)
    config = _checked(values)
    findings = [*settled.findings]
    manifests = [] if settled.manifest is None else [settled.manifest]
    labels: list[namespaces.Label] = []
    for item in of_kind:
        result, label = namespaces.of_namespace(config, item)
        findings += result
        labels += [label] if label is not None else []
    known = InjectionInputs(config, drivers, environment=_IMAGES)
    enrolled = _enrolled(of_kind)
    between = together.of_all(_to_be_applied(given, manifests), whole=whole)
    for item in given:
        if pods.makes_pods(item):
            findings += pods.of_pods(known, enrolled, item)
        elif objects.is_policy(item) and item.get("kind") != MESH_CONFIG.name:
            findings += objects.of_object(item, between.findings(item))
        findings += gateways.of_gateway(item)
        findings += installation.of_installation(item)
    findings.append(installation.root())
    return MigrationResult(tuple(findings), tuple(manifests), tuple(labels), values)


def _to_be_applied(documents: list[Document], manifests: list[Document]) -> list[Document]:
    """Return the objects to be applied: the given ones, with the new MeshConfig instead of the old."""
    return [*(item for item in documents if not _is_mesh_config(item)), *manifests]


def _only(meshes: tuple[str, ...]) -> str:
    if len(meshes) > 1:
        found = ", ".join(meshes)
        raise CommandFailed(f"the namespaces belong to several meshes ({found}): choose one with --mesh-name")
    return meshes[0] if meshes else ""


def _mesh_configs(documents: list[Document]) -> list[Document]:
    """Return the MeshConfigs; without any, the one that Open Service Mesh would create from its presets."""
    result = [document for document in documents if _is_mesh_config(document)]
    presets = (
        document
        for document in documents
        if document.get("kind") == CONFIG_MAP.name and named(document).endswith(PRESETS)
    )
    return result or [made for preset in presets if (made := _preset(preset)) is not None]


def _is_mesh_config(document: Document) -> bool:
    return document.get("kind") == MESH_CONFIG.name and objects.group_of(document) == MESH_CONFIG.group


def _preset(document: Document) -> Document | None:
    try:
        spec = json.loads(str(mapping(document.get("data")).get(_PRESET)))
    except ValueError:
        return None
    metadata = {**mapping(document.get("metadata")), "name": "osm-mesh-config"}
    head = {"apiVersion": f"{MESH_CONFIG.group}/v1alpha2", "kind": MESH_CONFIG.name, "metadata": metadata}
    return {**head, "spec": mapping(spec)}


def _settled(documents: list[Document], home: str) -> MeshConfigMigration:
    """Migrate MeshConfigs. One in `home` was written earlier; only the first of the others is used."""
    there = [document for document in documents if mapping(document.get("metadata")).get("namespace") == home]
    theirs = [document for document in documents if document not in there]
    if not documents:
        return MeshConfigMigration(())
    # An earlier run of migrate wrote the one in `home`, so this one is migrated only if there is no other.
    first, *others = theirs or there
    migration = configured(first, home)
    text = f"a mesh has only one MeshConfig, and {named(first)} is used: keep only the right one"
    code = str(Code.SEVERAL_CONFIGS)
    more = [Finding(named(item), MigrationStatus.REFUSED, text, code=code) for item in others]
    more += [finding for item in there if theirs for finding in objects.of_object(item)]
    return replace(migration, findings=(*migration.findings, *more))


def _values(mesh: str, settled: MeshConfigMigration) -> dict[str, Any]:
    """Return the chart's values: injection as before, and replacements of MeshConfig fields."""
    config = {**({"mesh": mesh} if mesh else {}), **settled.injection}
    selector = {"namespace_selector": f"{OSM_MONITORED}={mesh}"} if mesh else {}
    return {
        "injection": {"enabled": True, "config": config},
        "settings": {**selector, **settled.settings},
        **settled.values,
    }


def _checked(values: Mapping[str, Any]) -> InjectionConfig:
    """Return the injection configuration in the chart's values.

    Raise CommandFailed if values of a MeshConfig are invalid.
    """
    try:
        return read_configuration(values["injection"]["config"], "the sidecar settings of the MeshConfig")
    except ConfigurationError as error:
        raise CommandFailed(error) from error


def _enrolled(documents: Iterable[Document]) -> dict[str, NamespaceObject]:
    result = map(namespace_of, documents)
    return {str(namespace.name): namespace for namespace in result if namespaces.is_of_osm(namespace)}


def lost(findings: Iterable[Finding]) -> bool:
    """Return whether any finding means the loss of a function of Open Service Mesh."""
    return any(finding.standing in LOST for finding in findings)
