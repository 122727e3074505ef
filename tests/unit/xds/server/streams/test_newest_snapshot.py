"""Tests that a client gets the newest snapshot, whenever that is published and however slow the client is."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

import pytest
from google.protobuf import any_pb2
from hypothesis import example, given
from hypothesis import strategies as st

from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.unit.xds.conftest import make
from tests.unit.xds.server.transports import Client
from xds.budget import Account
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.discovery import DISCOVERY
from xds.hooks import AnyNode, NoObserver, Peer
from xds.limits import Limits
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.server.streams.call import Call
from xds.server.streams.conversation import Conversation
from xds.server.streams.decoder import Decoder
from xds.server.streams.encoder import Encoder
from xds.server.streams.wake_queue import WakeQueue
from xds.stream_status import Variant

NODE, GROUP = NodeKey("n"), GroupKey("g")
TYPES: Final = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
AGGREGATED = {discovery.variant: discovery for discovery in DISCOVERY if discovery.type_url is None}


class Event(Enum):
    """An event of a test; the events come in any order."""

    PUBLISH = auto()
    """The cache gets other content of every type."""
    TAKE = auto()
    """The client takes the message that is being written."""
    ANSWER = auto()
    """The client acknowledges the oldest unanswered message."""
    TURN = auto()
    """The event loop calls what is due, once."""


@dataclass
class Proxy:
    """A client that subscribes to one resource of each type."""

    variant: Variant
    client: Client = field(default_factory=Client)
    content: dict[str, bytes] = field(default_factory=dict)
    read: int = 0
    unanswered: list[tuple[TypeUrl, str]] = field(default_factory=list)

    def begin(self) -> None:
        """Send the first request of each type."""
        for type_url in TYPES:
            node = base_pb2.Node(id="a sidecar") if type_url == TYPES[0] else None
            self._say(type_url, ["a"], node=node)

    def take(self) -> bool:
        """Take the message that is being written; return whether there was one."""
        if not self.client.is_written_to:
            return False
        self.client.take()
        return True

    def answer(self) -> bool:
        """Acknowledge the oldest unanswered message; return whether there was one."""
        for message in self.client.sent[self.read :]:
            self._look_at(message)
        self.read = len(self.client.sent)
        if not self.unanswered:
            return False
        type_url, nonce = self.unanswered.pop(0)
        self._say(type_url, ["a"] if self.variant is Variant.SOTW else [], nonce=nonce)
        return True

    def _look_at(self, message: bytes) -> None:
        if self.variant is Variant.SOTW:
            response = discovery_pb2.DiscoveryResponse.FromString(message)
            (self.content[response.type_url],) = (item.value for item in response.resources)
            self.unanswered.append((TypeUrl(response.type_url), response.nonce))
        else:
            delta = discovery_pb2.DeltaDiscoveryResponse.FromString(message)
            (self.content[delta.type_url],) = (item.resource.value for item in delta.resources)
            self.unanswered.append((TypeUrl(delta.type_url), delta.nonce))

    def _say(self, type_url: TypeUrl, names: Sequence[str], **more: Any) -> None:
        if self.variant is Variant.SOTW:
            request: Any = discovery_pb2.DiscoveryRequest(resource_names=names)
        else:
            request = discovery_pb2.DeltaDiscoveryRequest(resource_names_subscribe=names)
        request.type_url, request.response_nonce = type_url, more.get("nonce", "")
        if (node := more.get("node")) is not None:
            request.node.CopyFrom(node)
        self.client.say(request.SerializeToString())


def _conversation(variant: Variant, cache: SnapshotCache) -> Conversation:
    limits = Limits().without_budgets()
    return Conversation(
        Call(1, NODE, Peer(None), Account(limits), {}),
        AGGREGATED[variant],
        cache=cache,
        encoder=Encoder("test"),
        decoder=Decoder(),
        authenticator=AnyNode(NODE),
        observer=NoObserver(),
        limits=limits,
        waking=WakeQueue(lambda: 0.0),
    )


async def _content_at_the_end(variant: Variant, events: Sequence[Event]) -> tuple[Snapshot, Proxy]:
    """Return the newest snapshot, and the client after the events, when nothing is left to do."""
    cache, proxy, published = SnapshotCache(), Proxy(variant), 0

    def publish() -> Snapshot:
        nonlocal published
        published += 1
        newest = Snapshot.of([make(type_url, "a", published) for type_url in TYPES])
        cache.publish({GROUP: newest}, {NODE: GROUP})
        return newest

    newest = publish()
    task = asyncio.create_task(_conversation(variant, cache).run(proxy.client))
    proxy.begin()
    await _at_rest(proxy)
    for event in events:
        match event:
            case Event.PUBLISH:
                newest = publish()
            case Event.TAKE:
                proxy.take()
            case Event.ANSWER:
                proxy.answer()
            case Event.TURN:
                await asyncio.sleep(0)
    await _at_rest(proxy)
    proxy.client.say(None)
    await task
    return newest, proxy


async def _at_rest(proxy: Proxy) -> None:
    """Let the client take and answer messages until none comes any more."""
    idle = 0
    while idle < 8:
        idle = 0 if proxy.take() or proxy.answer() else idle + 1
        await asyncio.sleep(0)


@pytest.mark.parametrize("variant", Variant)
@given(events=st.lists(st.sampled_from(Event), max_size=40))
@example(events=[Event.PUBLISH, Event.TURN, Event.TAKE, Event.PUBLISH, *[Event.TURN] * 4])
@example(events=[Event.PUBLISH, Event.TURN, Event.PUBLISH, Event.TURN])
def test_client_gets_the_newest_snapshot(variant: Variant, events: list[Event]) -> None:
    """A snapshot that is published while messages of the one before wait is sent after them."""
    newest, proxy = asyncio.run(_content_at_the_end(variant, events))
    expected = {type_url: _value(newest, type_url) for type_url in TYPES}
    assert proxy.content == expected


def _value(snapshot: Snapshot, type_url: TypeUrl) -> bytes:
    (resource,) = snapshot.ordered(type_url)
    return any_pb2.Any.FromString(resource.body).value
