"""Fixtures of a server in this process, and of sidecars without Envoy that reject chosen resources."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import pytest

from certs.keys.pair import Pair
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.identity.conftest import Server, serve
from xds.protocol.resources.references import references
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    SECRET,
    Reference,
    ResourceName,
    TypeUrl,
)
from xds.stream_status import Variant

__all__ = ["serve"]

SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
METHODS = {Variant.SOTW: "StreamAggregatedResources", Variant.DELTA: "DeltaAggregatedResources"}
WORDS = "the light client does not like it"
Resources = dict[Reference, bytes]


@dataclass
class Sidecar:
    """One stream, which rejects a whole response with a bad resource.

    With `words` it rejects like Envoy: only the bad resources, each with this text. `held` has the accepted
    resources, `sent` all received ones in order.
    """

    name: str
    variant: Variant
    rejects: Callable[[bytes], bool]
    words: str = ""
    held: Resources = field(default_factory=dict)
    sent: list[tuple[Reference, bytes]] = field(default_factory=list)
    rejected: list[Reference] = field(default_factory=list)
    removed: list[Reference] = field(default_factory=list)
    _asked: dict[TypeUrl, list[str]] = field(default_factory=dict)
    _nonces: dict[TypeUrl, str] = field(default_factory=dict)
    _call: Any = None

    async def run(self, channel: grpc.aio.Channel) -> None:
        """Follow the server until the end of the stream."""
        delta = self.variant is Variant.DELTA
        answer = discovery_pb2.DeltaDiscoveryResponse if delta else discovery_pb2.DiscoveryResponse
        self._call = channel.stream_stream(
            SERVICE + METHODS[self.variant],
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )()
        await self._say(CLUSTER, node=base_pb2.Node(id=self.name))
        await self._say(LISTENER)
        while (response := await self._call.read()) is not grpc.aio.EOF:
            await self._take(response)

    def end(self) -> None:
        """End the stream."""
        self._call.cancel()

    def routes(self, name: str) -> bytes:
        """Return the accepted route configuration of that name."""
        return self.held.get((ROUTE, ResourceName(name)), b"")

    async def _take(self, response: Any) -> None:
        type_url = TypeUrl(response.type_url)
        result = dict(self._named(type_url, response))
        self.sent.extend(result.items())
        bad = [key for key, value in result.items() if self.rejects(value)]
        answer = {"response_nonce": response.nonce}
        if bad:
            self.rejected.extend(bad)
            if self.words:
                self.held.update((key, value) for key, value in result.items() if key not in bad)
            await self._say(type_url, error_detail={"code": 13, "message": self._reason(bad)}, **answer)
            return
        self.held.update(result)
        for key in self._removed(type_url, response, result):
            self.removed.append(key)
            self.held.pop(key, None)
        await self._say(type_url, **answer)
        await self._follow()

    def _reason(self, bad: list[Reference]) -> str:
        item = "\n".join(f"{name}: {self.words}" for _, name in bad)
        return f"Error adding/updating listener(s) {item}\n" if self.words else WORDS

    def _removed(self, type_url: TypeUrl, response: Any, result: Resources) -> list[Reference]:
        if self.variant is Variant.DELTA:
            return [(type_url, name) for name in response.removed_resources]
        full = type_url in (CLUSTER, LISTENER)
        return [key for key in self.held if full and key[0] == type_url and key not in result]

    def _named(self, type_url: TypeUrl, response: Any) -> Iterable[tuple[Reference, bytes]]:
        for resource in response.resources:
            if self.variant is Variant.DELTA:
                yield (type_url, ResourceName(resource.name)), resource.resource.value
            else:
                yield (type_url, _name(type_url, resource.value)), resource.value

    async def _follow(self) -> None:
        """Subscribe to resources that clusters and listeners refer to, as Envoy does."""
        wanted: dict[TypeUrl, set[str]] = {ENDPOINT: set(), SECRET: set(), ROUTE: set()}
        for (type_url, _), value in self.held.items():
            if type_url in (CLUSTER, LISTENER):
                for kind, name in references(_MESSAGES[type_url].FromString(value)):
                    if kind in wanted:
                        wanted[kind].add(name)
        for kind, names in wanted.items():
            before = self._asked.get(kind, [])
            self._asked[kind] = sorted({*before, *names})
            if self._asked[kind] != before:
                new = sorted(names - set(before))
                subscribed = {"resource_names_subscribe": new} if self.variant is Variant.DELTA else {}
                await self._say(kind, **subscribed)

    async def _say(self, type_url: TypeUrl, **fields: Any) -> None:
        if self.variant is Variant.DELTA:
            await self._call.write(discovery_pb2.DeltaDiscoveryRequest(type_url=type_url, **fields))
            return
        if type_url in self._asked:
            fields["resource_names"] = self._asked[type_url]
            fields.setdefault("response_nonce", self._nonces.get(type_url, ""))
        self._nonces[type_url] = fields.get("response_nonce", "")
        await self._call.write(discovery_pb2.DiscoveryRequest(type_url=type_url, **fields))


_MESSAGES: dict[TypeUrl, Any] = {CLUSTER: cluster_pb2.Cluster, LISTENER: listener_pb2.Listener}


def _name(type_url: TypeUrl, value: bytes) -> ResourceName:
    """Return a resource's name, which is field 1 of every type."""
    length = value[1]
    assert value[0] == 0x0A, type_url
    assert length < 0x80
    return ResourceName(value[2 : 2 + length].decode())


Join = Callable[..., Sidecar]


@pytest.fixture
async def join() -> AsyncIterator[Join]:
    """A function that connects sidecars, which end with the test."""
    async with joining() as started:
        yield started


@contextlib.asynccontextmanager
async def joining() -> AsyncIterator[Join]:
    """Yield a function that connects sidecars. End them afterwards."""
    tasks: list[asyncio.Task[None]] = []

    def started(
        server: Server,
        name: str,
        variant: Variant,
        rejects: Callable[[bytes], bool] = lambda _: False,
        words: str = "",
        pair: Pair | None = None,
    ) -> Sidecar:
        pair = pair or server.certificate(name)
        roots = server.authority.trust_bundle()
        credentials = grpc.ssl_channel_credentials(roots, pair.key.reveal(), pair.chain_pem)
        sidecar = Sidecar(name, variant, rejects, words)

        async def run() -> None:
            options = [("grpc.use_local_subchannel_pool", 1)]
            async with grpc.aio.secure_channel(str(server.bound.ads), credentials, options) as channel:
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
                    await sidecar.run(channel)

        tasks.append(asyncio.create_task(run(), name=name))
        return sidecar

    yield started
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
