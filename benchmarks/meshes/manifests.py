"""Meshes as manifests: one file for each service, and one for each workload."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import (
    HTTP_ROUTE_GROUP,
    MESH_CONFIG,
    SERVICE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    WORKLOAD,
)
from meshwright.mesh.objects import MeshObject, ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch, HTTPRouteGroup, TrafficSplit, TrafficTarget
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Workload

Document = dict[str, Any]

_API: Final = {
    HTTP_ROUTE_GROUP: "specs.smi-spec.io/v1alpha4",
    MESH_CONFIG: "config.openservicemesh.io/v1alpha2",
    SERVICE: "v1",
    TRAFFIC_SPLIT: "split.smi-spec.io/v1alpha4",
    TRAFFIC_TARGET: "access.smi-spec.io/v1alpha3",
    WORKLOAD: "meshwright.dev/v1alpha1",
}


def document(key: ObjectKey, value: MeshObject | Workload) -> Document:
    """Return the manifest of an object; parsing it gives an equal object."""
    metadata: Document = {"name": key.name, "namespace": str(key.namespace)}
    if isinstance(value, Workload):
        metadata["labels"] = dict(value.labels)
    return {"apiVersion": _API[key.kind], "kind": key.kind.name, "metadata": metadata, "spec": _spec(value)}


def text(documents: Iterable[Document]) -> str:
    """Return manifests as one YAML file."""
    return yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False)


def _spec(value: MeshObject | Workload) -> Document:
    match value:
        case Workload():
            return _workload(value)
        case Service():
            ports = [
                {"name": port.name, "port": int(port.port), "targetPort": port.target_port}
                for port in value.ports
            ]
            return {"selector": dict(value.selector), "ports": ports}
        case HTTPRouteGroup():
            return {"matches": [_match(match) for match in value.matches]}
        case TrafficTarget():
            return {
                "destination": _account(value.destination),
                "sources": [_account(source) for source in value.sources],
                "rules": [
                    {"kind": rule.kind.value, "name": rule.name}
                    | ({"matches": list(rule.matches)} if rule.matches else {})
                    for rule in value.rules
                ],
            }
        case TrafficSplit():
            backends = [
                {"service": str(backend.service), "weight": backend.weight} for backend in value.backends
            ]
            return {"service": str(value.apex.name), "backends": backends}
        case MeshConfig():
            return {
                "sidecar": {"tlsMinProtocolVersion": value.sidecar.tls_min_version.value},
                "traffic": {"enablePermissiveTrafficPolicyMode": value.permissive},
            }
        case _:
            raise TypeError(f"a benchmark's mesh has no {type(value).__name__}")


def _workload(value: Workload) -> Document:
    return {
        "address": str(value.address),
        "serviceAccount": str(value.identity.service_account),
        "service": str(value.service),
        "uuid": str(value.uuid),
        "ports": [{"name": port.name, "port": int(port.number)} for port in value.ports],
    }


def _match(value: HTTPMatch) -> Document:
    return {"name": value.name, "pathRegex": value.path_regex, "methods": list(value.methods)}


def _account(value: ServiceIdentity) -> Document:
    return {
        "kind": "ServiceAccount",
        "name": str(value.service_account),
        "namespace": str(value.namespace),
    }


class MeshFolder:
    """A folder of manifests watched by a control plane, with atomic changes."""

    def __init__(self, path: Path) -> None:
        """Create the folder, and next to it a folder for drafts."""
        self.path = path
        # On the same file system, so that renaming is atomic, and outside the folder watched by the server.
        self._drafts = path.with_name(f"{path.name}.drafts")
        path.mkdir()
        self._drafts.mkdir()

    def write(self, files: Mapping[str, str]) -> None:
        """Write manifest files atomically by renaming, as `mv` does."""
        for name, content in files.items():
            draft = self._drafts / name.replace("/", "+")
            draft.write_text(content, encoding="utf-8")
            target = self.path / name
            if not target.parent.exists():
                target.parent.mkdir()
            os.replace(draft, target)  # noqa: PTH105 - the same, without a path's look-ups

    def remove(self, names: Iterable[str]) -> None:
        """Delete manifest files from the folder."""
        for name in names:
            (self.path / name).unlink()
