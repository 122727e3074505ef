"""What a client has of each resource on a stream, as far as it has said: values, made when asked for."""

import enum
from dataclasses import dataclass
from datetime import datetime

from xds.protocol.blame import said_of
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.type_state import Channel
from xds.protocol.wire import NO_VERSION, Node


class ResourceState(enum.StrEnum):
    """Where one resource of one stream stands."""

    MISSING = "missing"
    """It was asked for, and there is none."""
    NOT_SENT = "not-sent"
    SENT = "sent"
    """And not answered; or the client rejected another in the same response, and may have taken this one."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The newest version of a resource that was sent, with what the client said of that very one.

    `version` is empty where none was sent, or where it is not known which one the client has; `resource` is
    None where its content is not here any more. `said` is what the client said of one that it rejected.
    """

    name: ResourceName
    state: ResourceState
    version: Version = NO_VERSION
    resource: Resource | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class TypeResources:
    """What a client has of one type; `sent_at` is when the newest response of the type was sent."""

    type_url: TypeUrl
    sent_at: datetime | None
    resources: tuple[ResourceStatus, ...]


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """One stream: its client, what tells it from others of the same client, and each type in push order."""

    node: Node | None
    scope: str
    types: tuple[TypeResources, ...]


def resource_statuses(channel: Channel, snapshot: Snapshot | None) -> tuple[ResourceStatus, ...]:
    """Return what the client holds, has asked for or has rejected of one type, by name.

    `snapshot` is what there is for it now, sent or not.
    """
    there = {} if snapshot is None else snapshot.resources(channel.type_url)
    news = (response for response in channel.unanswered if not response.heartbeat)
    sent = {each.name: each for response in news for each in response.resources}
    names = {*channel.held, *channel.subscription.names, *channel.rejected}
    return tuple(_status(channel, name, there.get(name), sent.get(name)) for name in sorted(names))


def _status(
    channel: Channel, name: ResourceName, there: Resource | None, sent: Resource | None
) -> ResourceStatus:
    if sent is not None:
        return ResourceStatus(name, ResourceState.SENT, sent.version, sent)
    said = ""
    if name in channel.rejected:
        state, version = ResourceState.REJECTED, channel.rejected[name]
        if channel.rejection is not None:
            said = said_of(channel.rejection, name, channel.rejected.keys())
    elif name in channel.held:
        version = channel.held[name]
        state = ResourceState.SENT if version == NO_VERSION else ResourceState.ACCEPTED
    else:
        return ResourceStatus(name, ResourceState.MISSING if there is None else ResourceState.NOT_SENT)
    known = (there, channel.retired.get(name))
    found = (each for each in known if each is not None and each.version == version)
    return ResourceStatus(name, state, version, next(found, None), said)
