"""Versions: of each resource, and of a table of resources."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from xds.protocol.resources.layers import NOTHING, Layers
from xds.protocol.type_urls import ResourceName, Version

SUM: Final = 1 << 128
"""Modulus of digest sums.

A sum does not depend on order, and a change is one addition and one subtraction.
"""


@lru_cache(maxsize=2048)
def digest_of(name: ResourceName, version: Version) -> int:
    """Return the contribution of a resource to the digest of the table; equal in every process."""
    return int.from_bytes(hashlib.sha256(f"{name}\0{version}".encode()).digest()[:16])


def version_of(digest: int) -> Version:
    """Return a digest as the version of a type: 16 hexadecimal digits."""
    return Version(f"{digest:032x}"[16:])


class Versions(Layers[ResourceName, Version]):
    """The versions of the resources of one type, by name. Immutable, so streams can share equal ones."""

    __slots__ = ("_digest",)

    def __init__(
        self,
        base: Mapping[ResourceName, Version] = NOTHING,
        over: Mapping[ResourceName, Version | None] = NOTHING,
        size: int | None = None,
        digest: int | None = None,
    ) -> None:
        super().__init__(base, over, size)
        self._digest = digest

    @property
    def digest(self) -> int:
        """Return the sum of `digest_of` over all entries."""
        if self._digest is None:
            self._digest = sum(digest_of(*item) for item in self.items()) % SUM
        return self._digest

    def changed(self, changes: Mapping[ResourceName, Version | None]) -> "Versions":
        """Return a mapping with changed versions (None removes one)."""
        known = None if self._digest is None else self._after(changes)
        return Versions(*self.laid_over(changes), known)

    def towards(self, likely: "Versions", changes: Mapping[ResourceName, Version | None]) -> "Versions":
        """Return a mapping with changed versions; the object `likely` itself if the result is equal."""
        if changes is likely and not self:
            return likely
        size = len(self) + sum((now is not None) - (name in self) for name, now in changes.items())
        if size != len(likely):
            return self.changed(changes)
        # From an empty mapping, comparing every entry is faster than computing every digest.
        same = self._after(changes) == likely.digest if self else _agrees(likely, changes)
        return likely if same else self.changed(changes)

    def _after(self, changes: Mapping[ResourceName, Version | None]) -> int:
        digest = self.digest
        for name, now in changes.items():
            if (before := self.get(name)) is not None:
                digest -= digest_of(name, before)
            if now is not None:
                digest += digest_of(name, now)
        return digest % SUM


NO_VERSIONS: Final = Versions()


def _agrees(versions: Versions, changes: Mapping[ResourceName, Version | None]) -> bool:
    return all(versions.get(name) == version for name, version in changes.items())
