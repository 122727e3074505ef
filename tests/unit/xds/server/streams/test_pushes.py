"""Tests of the cost of a push to many streams in the same state, counted in encodings and callbacks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.unit.xds.conftest import make
from tests.unit.xds.server.transports import Client
from xds.budget import Account
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.discovery import DISCOVERY
from xds.hooks import AnyNode, NoObserver, Peer, StreamEnd
from xds.limits import Limits
from xds.protocol.resources.resource import ENDPOINT
from xds.protocol.resources.snapshot import Snapshot
from xds.server.streams.call import Call
from xds.server.streams.conversation import Conversation
from xds.server.streams.decoder import Decoder
from xds.server.streams.encoder import Encoder
from xds.server.streams.wake_queue import AT_ONCE, WakeQueue
from xds.stream_status import Variant

STREAMS = 200
NODE, GROUP = NodeKey("n"), GroupKey("g")
AGGREGATED = {discovery.variant: discovery for discovery in DISCOVERY if discovery.type_url is None}


@dataclass
class Server:
    """Conversations with STREAMS clients of one node."""

    variant: Variant
    cache: SnapshotCache = field(default_factory=SnapshotCache)
    encoder: Encoder = field(default_factory=lambda: Encoder("test"))
    decoder: Decoder = field(default_factory=Decoder)
    limits: Limits = field(default_factory=lambda: Limits().without_budgets())
    waking: WakeQueue = field(default_factory=lambda: WakeQueue(lambda: 0.0))
    clients: list[Client] = field(default_factory=lambda: [Client() for _ in range(STREAMS)])
    calls: list[Call] = field(default_factory=list)
    turns: int = 0

    def converse(self, number: int, client: Client) -> asyncio.Task[tuple[StreamEnd, str]]:
        """Serve one client."""
        call = Call(number, NODE, Peer(None), Account(self.limits), {})
        self.calls.append(call)
        conversation = Conversation(
            call,
            AGGREGATED[self.variant],
            cache=self.cache,
            encoder=self.encoder,
            decoder=self.decoder,
            authenticator=AnyNode(NODE),
            observer=NoObserver(),
            limits=self.limits,
            waking=self.waking,
        )
        return asyncio.create_task(conversation.run(client))

    def publish(self, content: int) -> None:
        """Publish the one assignment with new content."""
        self.cache.publish({GROUP: Snapshot.of([make(ENDPOINT, "a", content)])}, {NODE: GROUP})

    def answer(self) -> None:
        """Let every client take the current message and acknowledge it."""
        for client in self.clients:
            client.take()
        nonce = str(len(self.clients[0].sent) + 1)
        for client in self.clients:
            client.say(self.request(nonce))

    def request(self, nonce: str = "") -> bytes:
        """Return a client's request: without a nonce the first request, else an acknowledgement."""
        node = None if nonce else base_pb2.Node(id="a sidecar")
        if self.variant is Variant.SOTW:
            return discovery_pb2.DiscoveryRequest(
                type_url=ENDPOINT, resource_names=["a"], response_nonce=nonce, node=node
            ).SerializeToString()
        names = [] if nonce else ["a"]
        return discovery_pb2.DeltaDiscoveryRequest(
            type_url=ENDPOINT, resource_names_subscribe=names, response_nonce=nonce, node=node
        ).SerializeToString()

    async def settled(self) -> int:
        """Wait until all tasks are idle; return the number of callbacks since the previous idle state."""
        before = -1
        while before != self.turns:
            before = self.turns
            for _ in range(3):
                await asyncio.sleep(0)
        turns, self.turns = self.turns, 0
        return turns


@asynccontextmanager
async def serving(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Serve STREAMS clients that have acknowledged their first assignment."""
    loop, server = asyncio.get_running_loop(), Server(variant)
    run, own = loop.call_soon, asyncio.current_task()

    def counted(callback: object, *args: object, **options: object) -> object:
        if getattr(callback, "__self__", None) is not own:
            server.turns += 1
        return run(callback, *args, **options)  # type: ignore[arg-type] # passed on as it came

    monkeypatch.setattr(loop, "call_soon", counted)
    server.publish(0)
    tasks = [server.converse(*item) for item in enumerate(server.clients)]
    for client in server.clients:
        client.say(server.request())
    await server.settled()
    server.answer()
    await server.settled()
    yield server
    for client in server.clients:
        client.say(None)
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("variant", Variant)
async def test_push_to_many_streams_is_encoded_once_and_wakes_no_task(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop runs one callback for AT_ONCE streams, and every client gets the same bytes.

    An ACK wakes only its own reader.
    """
    async with serving(variant, monkeypatch) as server:
        for change in range(1, 4):
            made = server.encoder.made
            server.publish(change)
            assert await server.settled() == -(-STREAMS // AT_ONCE)
            assert server.encoder.made == made + 1
            assert all(client.is_written_to for client in server.clients)
            server.answer()
            assert await server.settled() == STREAMS
            assert {len(client.sent) for client in server.clients} == {change + 1}
            assert len({client.sent[-1] for client in server.clients}) == 1


async def test_stream_has_no_task_besides_its_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The handler's task reads, and writing needs no task; tasks cost memory for each stream."""
    before = len(asyncio.all_tasks())
    async with serving(Variant.DELTA, monkeypatch):
        assert len(asyncio.all_tasks()) == before + STREAMS


async def test_slow_client_gets_only_the_newest_content_when_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Intermediate content is skipped for the slow client, and other clients receive all of it."""
    async with serving(Variant.DELTA, monkeypatch) as server:
        slow, *others = server.clients
        server.publish(1)
        await server.settled()
        for client in others:
            client.take()
        for change in range(2, 5):
            server.publish(change)
            await server.settled()
            for client in others:
                client.take()
        assert slow.sent[1:] == []
        slow.take()
        await server.settled()
        slow.take()
        server.publish(5)
        await server.settled()
        assert [len(slow.sent), len(others[0].sent)] == [3, 5]
        newest = discovery_pb2.DeltaDiscoveryResponse.FromString(slow.sent[-1])
        assert newest.resources[0].version == make(ENDPOINT, "a", 4).version


async def test_call_ends_after_its_last_message_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An earlier end would cut the message off."""
    async with serving(Variant.DELTA, monkeypatch) as server:
        server.publish(1)
        await server.settled()
        call, client = server.calls[0], server.clients[0]
        call.leave(StreamEnd.AGED)
        await server.settled()
        ended = [call.is_over]
        client.take()
        await server.settled()
        ended.append(call.is_over)
        assert ended == [False, True]
        assert len(client.sent) == 2
