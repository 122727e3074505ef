"""For how long a client may keep what it was sent (N5: `Resource.ttl`, of incremental clients alone)."""

from collections.abc import Mapping

from xds.protocol.resources.layers import NOTHING
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import NO_VERSION, Response

Lives = Mapping[ResourceName, float]
"""What a client was told last to keep for so many seconds only; what is not in it is for ever."""


def lives_after(lives: Lives, held: Mapping[ResourceName, Version], response: Response) -> Lives:
    """Return what is so after a response: without a time of its own what it brings is for ever."""
    if not lives and response.table is not None and not response.table.special:
        return NOTHING
    told = {each.name: each.ttl_seconds for each in response.resources if each.ttl_seconds is not None}
    if not lives:
        return told or NOTHING
    sent = {each.name for each in response.resources}
    return {name: ttl for name, ttl in lives.items() if name in held and name not in sent} | told or NOTHING


def kept_alive(
    type_url: TypeUrl, lives: Lives, held: Mapping[ResourceName, Version], snapshot: Snapshot
) -> list[Resource]:
    """Return what the client may keep only for a time, by name, in the version that it holds.

    What comes in the place of one, or its end, may have to wait: until then it lives as it did.
    """
    resources, found = snapshot.resources(type_url), []
    for name in sorted({*lives, *(each.name for each in snapshot.living(type_url))}):
        version, resource = held.get(name, NO_VERSION), resources.get(name)
        if resource is not None and resource.version == version:
            found.append(resource)
        elif version != NO_VERSION and name in lives:
            found.append(Resource(type_url, name, version, b"", ttl_seconds=lives[name]))
    return found
