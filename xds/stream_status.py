"""Immutable descriptions of streams for people and tools, made on request."""

import enum
from dataclasses import dataclass
from datetime import datetime

from xds.cache import NodeKey
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version
from xds.protocol.type_state import Channel
from xds.protocol.wire import Node, Nonce, Rejection


class Variant(enum.StrEnum):
    """The two variants of the xDS protocol: state of the world, and incremental."""

    SOTW = "sotw"
    DELTA = "delta"


class SyncState(enum.StrEnum):
    """The state of one resource type on one stream."""

    ASKED = "asked"
    PENDING = "pending"
    SYNCED = "synced"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """One type on one stream: the newest response, and the client's answer to it.

    `rejected` are the resources that the rejection is about.
    """

    type_url: TypeUrl
    state: SyncState
    sent_version: Version
    sent_nonce: Nonce
    sent_at: datetime | None
    acked_version: Version
    rejection: Rejection | None
    rejected: tuple[ResourceName, ...]
    wildcard: bool
    names: tuple[ResourceName, ...]


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream: its node, its start, and each requested type in push order."""

    number: int
    node_key: NodeKey
    node: Node | None
    peer: str
    variant: Variant
    since: datetime
    served: bool
    types: tuple[TypeStatus, ...]


def type_status(channel: Channel, sent_at: datetime | None) -> TypeStatus:
    """Describe the state of one type (channel).

    `names` are sorted: those that the client holds or has requested.
    """
    if channel.rejection is not None:
        state = SyncState.REJECTED
    elif channel.unanswered:
        state = SyncState.PENDING
    else:
        # A client that reconnects with every resource in its current version is synced without a response.
        state = SyncState.SYNCED if channel.sent_nonce or channel.client_versions else SyncState.ASKED
    return TypeStatus(
        channel.type_url,
        state,
        channel.sent_version,
        channel.sent_nonce,
        sent_at,
        channel.acked_version,
        channel.rejection,
        tuple(sorted(channel.rejected)),
        channel.subscription.wildcard,
        tuple(sorted({*channel.client_versions, *channel.subscription.names})),
    )
