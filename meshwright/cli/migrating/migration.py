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
        each for each in given if each.get("kind") == NAMESPACE.name and each.get("apiVersion") == "v1"
    ]
    mesh = mesh or _only(namespaces.meshes(of_kind))
    settled = _settled(_mesh_configs(given), home)
    values = _values(mesh, settled)
    config = _checked(values)
    findings = [*settled.findings]
    manifests = [] if settled.manifest is None else [settled.manifest]
    labels: list[namespaces.Label] = []
    for each in of_kind:
        found, label = namespaces.of_namespace(config, each)
        findings += found
        labels += [label] if label is not None else []
    known = InjectionInputs(config, drivers, environment=_IMAGES)
    enrolled = _enrolled(of_kind)
    between = together.of_all(_to_be_applied(given, manifests), whole=whole)
    for each in given:
        if pods.makes_pods(each):
            findings += pods.of_pods(known, enrolled, each)
        elif objects.is_policy(each) and each.get("kind") != MESH_CONFIG.name:
            findings += objects.of_object(each, between.of(each))
        findings += gateways.of_gateway(each)
        findings += installation.of_installation(each)
    findings.append(installation.root())
    return MigrationResult(tuple(findings), tuple(manifests), tuple(labels), values)


def _to_be_applied(given: list[Document], manifests: list[Document]) -> list[Document]:
    """Return the objects, with the written MeshConfig in place of the given ones."""
    return [*(each for each in given if not _is_mesh_config(each)), *manifests]


def _only(meshes: tuple[str, ...]) -> str:
    if len(meshes) > 1:
        found = ", ".join(meshes)
        raise CommandFailed(f"the namespaces belong to several meshes ({found}): choose one with --mesh-name")
    return meshes[0] if meshes else ""


def _mesh_configs(documents: list[Document]) -> list[Document]:
    """Return the MeshConfigs; without any, the one that Open Service Mesh would create from its presets."""
    found = [each for each in documents if _is_mesh_config(each)]
    presets = (
        each for each in documents if each.get("kind") == CONFIG_MAP.name and named(each).endswith(PRESETS)
    )
    return found or [made for each in presets if (made := _preset(each)) is not None]


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
    there = [each for each in documents if mapping(each.get("metadata")).get("namespace") == home]
    theirs = [each for each in documents if each not in there]
    if not documents:
        return MeshConfigMigration(())
    # An earlier run of migrate wrote the one in `home`, so this one is migrated only if there is no other.
    first, *others = theirs or there
    found = configured(first, home)
    said = f"a mesh has only one MeshConfig, and {named(first)} is used: keep only the right one"
    code = str(Code.SEVERAL_CONFIGS)
    more = [Finding(named(each), MigrationStatus.REFUSED, said, code=code) for each in others]
    more += [finding for each in there if theirs for finding in objects.of_object(each)]
    return replace(found, findings=(*found.findings, *more))


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
    """Return the injector's configuration; raise CommandFailed if values of a MeshConfig are invalid."""
    try:
        return read_configuration(values["injection"]["config"], "the sidecar settings of the MeshConfig")
    except ConfigurationError as error:
        raise CommandFailed(error) from error


def _enrolled(documents: Iterable[Document]) -> dict[str, NamespaceObject]:
    found = map(namespace_of, documents)
    return {str(each.name): each for each in found if namespaces.is_of_osm(each)}


def lost(findings: Iterable[Finding]) -> bool:
    """Return whether any finding loses a function."""
    return any(each.standing in LOST for each in findings)
