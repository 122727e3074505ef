"""Resources that others have replaced, kept for a while, so that two versions of one can be compared."""

from collections import OrderedDict
from typing import Final

from xds.protocol.resource import Resource, ResourceName, TypeUrl, Version

BYTES: Final = 8 * 1024 * 1024
"""Resources kept in all, with their bodies as they are kept; the oldest go first."""

BESIDE: Final = 768
"""What a resource takes beside its body, which is often less: objects, its name, what it refers to."""


class Replaced:
    """The resources replaced last, by type, name and version. Secrets are never among them."""

    def __init__(self, limit: int = BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[tuple[TypeUrl, ResourceName, Version], Resource] = OrderedDict()

    def keep(self, resource: Resource) -> None:
        """Keep a resource that is not in force any more, at least for some group of proxies."""
        key = (resource.type_url, resource.name, resource.version)
        if resource.secret or key in self._kept:
            return
        self._kept[key] = resource
        self._size += BESIDE + len(resource.kept)
        while self._size > self._limit:
            self._size -= BESIDE + len(self._kept.popitem(last=False)[1].kept)

    def find(self, type_url: TypeUrl, name: ResourceName, version: Version) -> Resource | None:
        """Return a replaced resource, or None where it is not kept."""
        return self._kept.get((type_url, name, version))
