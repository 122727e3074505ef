"""Mesh directory of the demo: manifests are copied into the directory and deleted, as a user would do."""

import shutil
from pathlib import Path
from typing import Final

import yaml

from demo.topology import PLACES, Addresses, workload
from meshwright.mesh.workload import Explicit, Workload

SOURCE: Final = Path(__file__).parent / "manifests"
"""Directory with the variants of the manifests, for users to copy."""

ALWAYS: Final = ("namespaces.yaml", "services.yaml")
CHANGING: Final = ("mesh-config.yaml", "access.yaml", "access-v2.yaml", "split.yaml")
"""Files of the mesh directory that phases add, replace and delete."""


def document(described: Workload) -> dict[str, object]:
    """Return a Workload manifest as a document."""
    spec: dict[str, object] = {
        "serviceAccount": str(described.identity.service_account),
        "uuid": str(described.uuid),
        "service": str(described.service),
        "address": str(described.address),
    }
    if described.ports:
        spec["ports"] = [{"name": port.name, "port": int(port.number)} for port in described.ports]
    if isinstance(described.interception, Explicit):
        spec.update(_explicit(described.interception))
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": described.key.name,
            "namespace": str(described.key.namespace),
            "labels": dict(described.labels),
        },
        "spec": spec,
    }


def _explicit(interception: Explicit) -> dict[str, object]:
    fields: dict[str, object] = {
        "upstreams": [
            {
                "service": f"{upstream.service.name}.{upstream.service.namespace}",
                "port": int(upstream.service_port),
                "address": str(upstream.local_address),
                "localPort": int(upstream.local_port),
            }
            for upstream in interception.upstreams
        ]
    }
    if interception.application_address is not None:
        fields["applicationAddress"] = str(interception.application_address)
    return fields


def workloads(addresses: Addresses) -> str:
    """Return the manifests of all workloads as one YAML text."""
    documents = [document(workload(place, addresses)) for place in PLACES]
    head = "# Written by the demo: one Workload per program, with the addresses of this run.\n"
    return head + yaml.safe_dump_all(documents, sort_keys=False)


def prepare(directory: Path, addresses: Addresses) -> None:
    """Create the mesh directory anew with namespaces, services and workloads, and without policy."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in ALWAYS:
        shutil.copyfile(SOURCE / name, directory / name)
    (directory / "workloads.yaml").write_text(workloads(addresses), "utf-8")


def apply(directory: Path, wanted: dict[str, str]) -> None:
    """Change the files of CHANGING to `wanted`: name in the mesh directory → variant under `manifests/`.

    For example, `{"split.yaml": "split/traffic-split-v1.yaml"}`. Files without a variant are deleted, files
    with equal contents stay untouched, and the others are overwritten as `cp` does.
    """
    for name in CHANGING:
        target, variant = directory / name, wanted.get(name)
        if variant is None:
            target.unlink(missing_ok=True)
        elif not target.exists() or target.read_bytes() != (SOURCE / variant).read_bytes():
            # Not by renaming: the control plane must also cope with files that are written in place.
            shutil.copyfile(SOURCE / variant, target)
