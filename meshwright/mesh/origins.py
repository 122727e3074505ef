"""Where an object comes from: a place in a file, an object of a cluster, or a source."""

from dataclasses import dataclass

Order = tuple[str, int, int, str]
"""What origins of all kinds are sorted by."""


@dataclass(frozen=True, slots=True)
class InFile:
    """A place in a file (its path relative to its source): the document, from 1, and its first line."""

    path: str
    document: int = 1
    line: int = 1

    @property
    def order(self) -> Order:
        """What it is sorted by."""
        return (self.path, self.document, self.line, "")

    def __str__(self) -> str:
        return f"{self.path}:{self.line} (document {self.document})"


@dataclass(frozen=True, slots=True)
class InCluster:
    """An object as a cluster's API server has it: the cluster's name, and the object's resourceVersion.

    `generation` counts what its owner has written, where the kind has that; 0 where it has not.
    """

    cluster: str
    resource_version: str
    generation: int = 0

    @property
    def order(self) -> Order:
        """What it is sorted by."""
        return (self.cluster, 0, 0, self.resource_version)

    def __str__(self) -> str:
        return f"{self.cluster} (resourceVersion {self.resource_version})"


@dataclass(frozen=True, slots=True)
class FromSource:
    """A source by its name, with how it came by what it says: a name in the DNS, and who was asked."""

    source: str
    detail: str = ""

    @property
    def order(self) -> Order:
        """What it is sorted by."""
        return (self.source, 0, 0, self.detail)

    def __str__(self) -> str:
        return f"{self.source} ({self.detail})" if self.detail else self.source


Origin = InFile | InCluster | FromSource
