"""Objects as a source holds them: where each came from, and what was wrong with it."""

import enum
from dataclasses import dataclass

from mesh.config import MeshConfig
from mesh.identity import ServiceIdentity
from mesh.names import Namespace
from mesh.policy import HTTPRouteGroup, TCPRoute, TrafficSplit, TrafficTarget
from mesh.service import Scope, Service
from mesh.workload import PodTemplate, Workload


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """An object's kind, namespace and name; the namespace of a cluster-wide kind is empty."""

    kind: str
    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where an object was read: a file (relative to its source), its document (from 1) and first line."""

    source: str
    document: int = 1
    line: int = 1

    def __str__(self) -> str:
        return f"{self.source}:{self.line} (document {self.document})"


class Severity(enum.StrEnum):
    """ERROR: (part of) the object is not in force. WARNING: in force, but look. INFO: read, not used."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong with an object, in the words of whoever must mend it.

    `code` is stable. `field` is a path such as `spec.rules[0].kind`; `value` is what stands there, cut
    short and never a secret; `expected` says what would be right.
    """

    code: str
    severity: Severity
    origin: Origin
    key: ObjectKey | None
    field: str
    value: str
    expected: str

    def __str__(self) -> str:
        named = str(self.key) if self.key else "document"
        found = " ".join(part for part in (self.field, f"is {self.value}" if self.value else "") if part)
        return f"{self.code} {self.origin}: {named}: {found + ': ' if found else ''}{self.expected}"


@dataclass(frozen=True, slots=True, order=True)
class EndpointSlice:
    """discovery.k8s.io EndpointSlice (or core Endpoints): ready addresses of one service.

    `ports` pairs a port's name with its number, as the slice has them.
    """

    service: str
    namespace: Namespace
    name: str
    addresses: tuple[str, ...]
    ports: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NamespaceObject:
    """core Namespace with its labels and annotations, as sorted pairs.

    `permissive` says whether its workloads accept every client of the mesh, None leaves that to the
    MeshConfig; `scope` narrows the services in their configuration.
    """

    name: Namespace
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    permissive: bool | None = None
    scope: Scope = None


MeshObject = (
    EndpointSlice
    | HTTPRouteGroup
    | MeshConfig
    | NamespaceObject
    | PodTemplate
    | Service
    | ServiceIdentity
    | TCPRoute
    | TrafficSplit
    | TrafficTarget
    | Workload
)


@dataclass(frozen=True, slots=True)
class Sourced:
    """An object in force, with where it came from; `stale` marks a last good form whose newest is bad."""

    key: ObjectKey
    value: MeshObject
    origin: Origin
    stale: bool = False
