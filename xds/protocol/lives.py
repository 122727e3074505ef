"""Times to live of the resources held by a client (N5: `Resource.ttl`, incremental variant only)."""

from collections.abc import Mapping

from xds.protocol.resources.layers import NOTHING
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import NO_VERSION, Response

Lives = Mapping[ResourceName, float]
"""Time to live of each resource in seconds, as last sent. Names without a time to live are missing."""


def lives_after(lives: Lives, client_versions: Mapping[ResourceName, Version], response: Response) -> Lives:
    """Return the times to live after a response.

    A resource sent without a time loses the earlier one.
    """
    if not lives and response.table is not None and not response.table.special:
        return NOTHING
    fields = {
        resource.name: resource.ttl_seconds
        for resource in response.resources
        if resource.ttl_seconds is not None
    }
    if not lives:
        return fields or NOTHING
    sent = {resource.name for resource in response.resources}
    return {
        name: ttl for name, ttl in lives.items() if name in client_versions and name not in sent
    } | fields or NOTHING


def kept_alive(
    type_url: TypeUrl, lives: Lives, client_versions: Mapping[ResourceName, Version], snapshot: Snapshot
) -> list[Resource]:
    """Return the resources that need a heartbeat, by name, each in the version that the client holds.

    A replacement or a removal may have to wait for other responses. Until then the earlier version needs a
    heartbeat, and is represented by a resource without a body.
    """
    resources, result = snapshot.resources(type_url), []
    for name in sorted({*lives, *(item.name for item in snapshot.living(type_url))}):
        version, resource = client_versions.get(name, NO_VERSION), resources.get(name)
        if resource is not None and resource.version == version:
            result.append(resource)
        elif version != NO_VERSION and name in lives:
            result.append(Resource(type_url, name, version, b"", ttl_seconds=lives[name]))
    return result
