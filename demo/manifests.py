"""The mesh directory of the demo: our manifests, put there and taken away as a user would."""

import shutil
from pathlib import Path
from typing import Final

import yaml

from demo.topology import PLACES, Addresses, workload
from meshwright.mesh.workload import Explicit, Workload

SOURCE: Final = Path(__file__).parent / "manifests"
"""Where the variants stand, for people to copy from."""

ALWAYS: Final = ("namespaces.yaml", "services.yaml")
CHANGING: Final = ("mesh-config.yaml", "access.yaml", "access-v2.yaml", "split.yaml")
"""Files of the mesh directory that phases put, replace and remove."""


def document(described: Workload) -> dict[str, object]:
    """Return a Workload manifest."""
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
    """Return the workloads' manifests as one YAML text."""
    documents = [document(workload(place, addresses)) for place in PLACES]
    head = "# Written by the demo: one Workload per program, with the addresses of this run.\n"
    return head + yaml.safe_dump_all(documents, sort_keys=False)


def prepare(directory: Path, addresses: Addresses) -> None:
    """Make the mesh directory anew: namespaces, services and workloads, and no policy yet."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in ALWAYS:
        shutil.copyfile(SOURCE / name, directory / name)
    (directory / "workloads.yaml").write_text(workloads(addresses), "utf-8")


def apply(directory: Path, wanted: dict[str, str]) -> None:
    """Bring the changing files to `wanted`: name in the mesh directory → variant under `manifests/`.

    What is not wanted is deleted; what is there already stays untouched; the rest is copied over, as `cp`
    does it.
    """
    for name in CHANGING:
        target, variant = directory / name, wanted.get(name)
        if variant is None:
            target.unlink(missing_ok=True)
        elif not target.exists() or target.read_bytes() != (SOURCE / variant).read_bytes():
            shutil.copyfile(SOURCE / variant, target)
