"""Origins of objects: a place in a file, an object in a cluster, or a source."""

from dataclasses import dataclass

Order = tuple[str, int, int, str]
"""Sort key of origins of all kinds."""


@dataclass(frozen=True, slots=True)
class InFile:
    """Place in a file (path relative to the source): the document, from 1, and its first line.

    For example: `split.yaml:3 (document 2)`.
    """

    path: str
    document: int = 1
    line: int = 1

    @property
    def order(self) -> Order:
        """Sort key among origins of all kinds."""
        return (self.path, self.document, self.line, "")

    def __str__(self) -> str:
        return f"{self.path}:{self.line} (document {self.document})"


@dataclass(frozen=True, slots=True)
class InCluster:
    """An object at the API server of a cluster: the cluster's name, and the object's resourceVersion.

    `generation` counts the changes by the owner; 0 for kinds without a generation. `uid` differs from that of
    an earlier object with the same name; empty for kinds whose UID is not kept.
    """

    cluster: str
    resource_version: str
    generation: int = 0
    uid: str = ""

    @property
    def order(self) -> Order:
        """Sort key among origins of all kinds."""
        return (self.cluster, 0, 0, self.resource_version)

    def __str__(self) -> str:
        return f"{self.cluster} (resourceVersion {self.resource_version})"


@dataclass(frozen=True, slots=True)
class FromSource:
    """A source of objects or problems by name, and the place in the source: a manifest, or a DNS name."""

    source: str
    detail: str = ""

    @property
    def order(self) -> Order:
        """Sort key among origins of all kinds."""
        return (self.source, 0, 0, self.detail)

    def __str__(self) -> str:
        return f"{self.source} ({self.detail})" if self.detail else self.source


Origin = InFile | InCluster | FromSource
