"""A proxy, with Envoy and agent, that follows changes of root certificates without the agent's code."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as Packed

from certs.keys.leaf import is_signed_by_bundle
from certs.keys.pair import Pair
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.feature.identity.grpc_machine import RENEW, TRUST, Machine, call
from xds.protocol.resources.resource import SECRET

NAMES = ("root-cert:cluster.local", "service-cert")


@dataclass
class RootAgent:
    """The agent of a proxy: the proxy's certificate, and the roots for the control plane."""

    server: Any
    name: str
    pair: Pair
    roots: bytes
    serials: set[str] = field(default_factory=set)
    """Serials of the renewed certificates."""
    pause: float = 0.5
    """Seconds between two reports; a server refuses more than one a second for longer than 20 s."""

    def changed(self) -> None:
        """Take note of another certificate or of other roots."""

    async def follow(self, *, renews: bool = True) -> None:
        """Report the present roots, store new roots, and renew when the server asks for it, if `renews`."""
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, ConnectionError):
                details = await self._asked(TRUST, self._trust_request())
                answer = wire.TrustResponse.FromString(details)
                self.roots = answer.trust_bundle_pem or self.roots
                self.changed()
                if renews and answer.renew_after.ToDatetime(UTC) <= datetime.now(UTC):
                    machine = Machine()
                    request = wire.RenewRequest(csr_der=machine.csr).SerializeToString()
                    given = wire.Certificate.FromString(await self._asked(RENEW, request))
                    self.pair, self.roots = machine.pair(given), given.trust_bundle_pem
                    self.serials.add(self.pair.leaf.serial)
                    self.changed()
            await asyncio.sleep(self.pause)

    def _trust_request(self) -> bytes:
        digest = hashlib.sha256(self.roots).hexdigest()
        return wire.TrustRequest(bundle_digest=digest).SerializeToString()

    async def _asked(self, method: str, request: bytes) -> bytes:
        tls = grpc.ssl_channel_credentials(self.roots, self.pair.key.reveal(), self.pair.chain_pem)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        async with grpc.aio.secure_channel(
            str(self.server.bound.enrolment["renewal"]), tls, options
        ) as channel:
            answered = await call(channel, method, request)
        if answered.code is not grpc.StatusCode.OK:
            raise ConnectionError(f"{answered.code}: {answered.words}")
        return answered.message


@dataclass
class Follower(RootAgent):
    """A proxy's certificate, roots and secrets."""

    secrets: dict[str, secret_pb2.Secret] = field(default_factory=dict)

    @property
    def chain(self) -> bytes:
        """Return the certificate chain that the proxy presents to peers."""
        return self.secrets["service-cert"].tls_certificate.certificate_chain.inline_bytes

    @property
    def mesh_roots(self) -> bytes:
        """Return the roots with which the proxy verifies peers."""
        return self.secrets["root-cert:cluster.local"].validation_context.trusted_ca.inline_bytes

    @asynccontextmanager
    async def running(self, *, agent: bool = True, renews: bool = True) -> AsyncIterator["Follower"]:
        """Run the Envoy, and the agent if there is one, within the block."""
        tasks = [asyncio.create_task(self._envoy(), name="envoy")]
        if agent:
            tasks.append(asyncio.create_task(self.follow(renews=renews), name="agent"))
        try:
            while len(self.secrets) < len(NAMES):
                assert not any(task.done() for task in tasks), tasks
                await asyncio.sleep(0.01)
            yield self
            assert not any(task.done() for task in tasks), tasks
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _envoy(self) -> None:
        """Keep a stream open. When it ends, reconnect with the current files."""
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError):
                async with self.server.client(self.pair, self.roots) as client:
                    node = base_pb2.Node(id=self.name)
                    await client.call.write(
                        discovery_pb2.DeltaDiscoveryRequest(
                            node=node, type_url=SECRET, resource_names_subscribe=NAMES
                        )
                    )
                    while (response := await client.call.read()) is not grpc.aio.EOF:
                        self._take(response)
                        await client.call.write(
                            discovery_pb2.DeltaDiscoveryRequest(
                                type_url=SECRET, response_nonce=response.nonce
                            )
                        )
            await asyncio.sleep(0.05)

    def _take(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        for resource in response.resources:
            secret = secret_pb2.Secret()
            Packed.FromString(resource.resource.SerializeToString()).Unpack(secret)
            self.secrets[resource.name] = secret
        if len(self.secrets) == len(NAMES):
            assert is_signed_by_bundle(self.chain, self.mesh_roots), (
                "its own certificate is none by its own roots"
            )
