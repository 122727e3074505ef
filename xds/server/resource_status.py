"""Status of each resource on a stream, as far as the client has acknowledged it; built on request."""

import enum
from dataclasses import dataclass
from datetime import datetime

from xds.protocol.blame import message_about
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.type_state import Channel
from xds.protocol.wire import NO_VERSION, Node


class ResourceState(enum.StrEnum):
    """The state of one resource on one stream."""

    MISSING = "missing"
    """The client requested a missing resource."""
    NOT_SENT = "not-sent"
    SENT = "sent"
    """Sent and not answered, or in a response rejected for another resource, so perhaps applied.
    """
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The newest sent version of a resource, with the client's answer to exactly this version.

    `version` is empty before the first sending, or if the held version is unknown. `resource` is None if the
    content is not in memory any more. `error_message` is the client's error message for a rejected resource.
    """

    name: ResourceName
    state: ResourceState
    version: Version = NO_VERSION
    resource: Resource | None = None
    error_message: str = ""


@dataclass(frozen=True, slots=True)
class TypeResources:
    """The resources of one type. `sent_at` is the time of the newest response of the type."""

    type_url: TypeUrl
    sent_at: datetime | None
    resources: tuple[ResourceStatus, ...]


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """One stream.

    The node, a scope to distinguish the client's streams, and each type in push order.
    """

    node: Node | None
    scope: str
    types: tuple[TypeResources, ...]


def resource_statuses(channel: Channel, snapshot: Snapshot | None) -> tuple[ResourceStatus, ...]:
    """Return the status of each resource that the client holds, requested or rejected, by name.

    `snapshot` has the current resources, whether sent or not.
    """
    there = {} if snapshot is None else snapshot.resources(channel.type_url)
    news = (response for response in channel.unanswered if not response.heartbeat)
    sent = {resource.name: resource for response in news for resource in response.resources}
    names = {*channel.client_versions, *channel.subscription.names, *channel.rejected}
    return tuple(_status(channel, name, there.get(name), sent.get(name)) for name in sorted(names))


def _status(
    channel: Channel, name: ResourceName, there: Resource | None, sent: Resource | None
) -> ResourceStatus:
    if sent is not None:
        return ResourceStatus(name, ResourceState.SENT, sent.version, sent)
    text = ""
    if name in channel.rejected:
        state, version = ResourceState.REJECTED, channel.rejected[name]
        if channel.rejection is not None:
            text = message_about(channel.rejection, name, channel.rejected.keys())
    elif name in channel.client_versions:
        version = channel.client_versions[name]
        state = ResourceState.SENT if version == NO_VERSION else ResourceState.ACCEPTED
    else:
        return ResourceStatus(name, ResourceState.MISSING if there is None else ResourceState.NOT_SENT)
    known = (there, channel.retired.get(name))
    result = (resource for resource in known if resource is not None and resource.version == version)
    return ResourceStatus(name, state, version, next(result, None), text)
