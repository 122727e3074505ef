"""The bookstore in Pods: deployment, queries, and changing manifests."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from demo import manifests
from demo.apps.control import AppClient
from demo.kubernetes.plane import NAMESPACE, Plane
from demo.kubernetes.pods import Program, ProgramSelector, insist
from demo.topology import (
    BOOKBUYER,
    BOOKTHIEF,
    DATABASE,
    PLACES,
    SERVICE_PORTS,
    STORE_V1,
    STORE_V2,
    WAREHOUSE,
    Place,
)
from meshwright.mesh.service import ServiceKey

APPS: Final = Path(__file__).parent / "manifests" / "apps"
"""Directory with the manifests of the programs, as published by Open Service Mesh."""
SCENES: Final = Path(__file__).parent / "manifests" / "scenes"
_ROLLED_OUT: Final = ("Deployment", "StatefulSet")
"""Kinds with a rollout that `kubectl rollout status` can wait for."""
_CONTAINERS: Final = {
    BOOKBUYER: "bookbuyer",
    BOOKTHIEF: "bookthief",
    STORE_V1: "bookstore",
    STORE_V2: "bookstore",
    WAREHOUSE: "bookwarehouse",
    DATABASE: "mysql",
}


def selected(place: Place) -> ProgramSelector:
    """Return the selector for the Pods of a workload's program."""
    labels = ",".join(f"{name}={value}" for name, value in place.labels if place is STORE_V1 or name == "app")
    return ProgramSelector(str(place.identity.namespace), labels, _CONTAINERS[place])


class PodStore:
    """A bookstore with programs in Pods, or with only the programs of `places`."""

    def __init__(self, plane: Plane, image: str, places: Sequence[Place] = PLACES) -> None:
        self.plane = plane
        self.kubectl = kubectl = plane.kubectl
        self.image = image
        self.kubectl_programs = {place.name: Program(kubectl, selected(place)) for place in places}
        self.programs = {name: AppClient(asked) for name, asked in self.kubectl_programs.items()}
        self._applied: dict[str, str] = {}
        self._workloads: set[tuple[str, str]] = set()

    def target(self, place: Place, service: ServiceKey) -> tuple[str, int]:
        """Return host and port at which clients call a service, the same for all clients."""
        del place
        return f"{service.name}.{service.namespace}", SERVICE_PORTS[service]

    async def change(self, wanted: Mapping[str, str]) -> None:
        """Apply the manifests `wanted` (file → variant), and delete those that are not wanted any more."""
        for name in manifests.CHANGING:
            before, now = self._applied.get(name), wanted.get(name)
            if now is not None and now != before:
                await self.kubectl.apply(_documents(now))
                self._applied[name] = now
            elif now is None and before is not None:
                await self.remove(_documents(before))
                del self._applied[name]

    async def deploy(self, documents: Iterable[Mapping[str, object]]) -> None:
        """Apply the objects, with the demo's image; Pods in enrolled namespaces get sidecars."""
        made = [with_image(dict(document), self.image) for document in documents]
        self._workloads |= {
            (item["metadata"]["namespace"], f"{item['kind']}/{item['metadata']['name']}")
            for item in made
            if item["kind"] in _ROLLED_OUT
        }
        await self.kubectl.apply(made)

    async def remove(self, documents: Iterable[Mapping[str, object]]) -> None:
        """Delete the objects from the cluster; missing objects are ignored."""
        given = yaml.safe_dump_all(documents)
        await self.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=given)

    def check(self) -> None:
        """Do nothing, because the programs are no processes of the demo.

        Failed requests reveal broken programs.
        """

    async def wait(self) -> None:
        """Wait until all programs answer.

        One process watches the rollout of each workload. Repeated queries would need a process each time, and
        CPU time that the starting Pods need.
        """
        words = ("rollout", "status", "--timeout=390s")
        await asyncio.gather(
            *(self.kubectl(*words, name, "-n", namespace) for namespace, name in sorted(self._workloads))
        )
        await asyncio.gather(
            *(insist(program, "GET", "/status") for program in self.kubectl_programs.values())
        )

    async def close(self) -> None:
        """Close the streams to the Pods of all programs."""
        for program in self.kubectl_programs.values():
            await program.close()


def _documents(variant: str) -> list[dict[str, Any]]:
    """Return the objects of a variant; the MeshConfig moves to the namespace of the control plane."""
    result = list(yaml.safe_load_all((manifests.SOURCE / variant).read_text("utf-8")))
    for item in result:
        if item["kind"] == "MeshConfig":
            item["metadata"]["namespace"] = NAMESPACE
    return result


def scene(name: str) -> list[dict[str, Any]]:
    """Return the objects in the manifest of a scene."""
    return list(yaml.safe_load_all((SCENES / name).read_text("utf-8")))


def applications(folder: Path = APPS) -> list[dict[str, Any]]:
    """Return the objects in a folder of manifests, without TrafficTargets, which are applied by phases."""
    texts = (file.read_text("utf-8") for file in sorted(folder.glob("*.yaml")))
    result = [item for text in texts for item in yaml.safe_load_all(text) if item is not None]
    return [item for item in result if item["kind"] != "TrafficTarget"]


def with_image(document: dict[str, Any], image: str) -> dict[str, Any]:
    """Set the image of a workload's containers; the node has the image and cannot pull others."""
    for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
        container |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    return document


def namespaces() -> Iterator[dict[str, Any]]:
    """Yield the bookstore's namespaces, with the labels of Open Service Mesh's enrolment."""
    for name in sorted({str(place.identity.namespace) for place in PLACES}):
        metadata = {
            "name": name,
            "labels": {"openservicemesh.io/monitored-by": "osm"},
            "annotations": {"openservicemesh.io/sidecar-injection": "enabled"},
        }
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
