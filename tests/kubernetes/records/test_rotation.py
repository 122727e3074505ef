"""Tests of a root rotation with two real servers, and sidecars at both, on a real API server."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.material import PrivateKey
from certs.keys.pair import Pair, matched_pair
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.identity.root_follower import Follower
from tests.feature.serve.delta_sidecar import DELTA
from tests.kubernetes.records.test_servers import Replica, until
from tests.kubernetes.records.test_servers import replicas as replicas
from tests.unit.certs.issuers.example_cas import ca

FILES: Final = {"certificate": "tls.crt", "key": "tls.key"}
RENEWAL: Final = ("--set", "renewal_address=127.0.0.1:0")


@dataclass
class Address:
    """The servers that a proxy knows: it connects to the first one that runs."""

    servers: tuple[Replica, ...]

    @property
    def present(self) -> Replica:
        """Return the first server that runs."""
        return next(server for server in self.servers if server.running.process.poll() is None)

    @property
    def bound(self) -> "Address":
        """Return this object, as a server with addresses."""
        return self

    @property
    def enrolment(self) -> dict[str, HostPort]:
        """Return the address for agents."""
        return {"renewal": HostPort.parse(self.present.running.bound["renewal"])}

    @asynccontextmanager
    async def client(self, pair: Pair, roots: bytes) -> AsyncIterator[Any]:
        """Open a stream."""
        credentials = grpc.ssl_channel_credentials(roots, pair.key.reveal(), pair.chain_pem)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        at = str(self.present.running.bound["ads"])
        async with grpc.aio.secure_channel(at, credentials, options) as channel:
            yield _Client(channel)


class _Client:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.call: Any = channel.stream_stream(
            DELTA,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=discovery_pb2.DeltaDiscoveryResponse.FromString,
        )()


def follower(name: ProxyName, issued_at: Replica, folder: Path, *servers: Replica) -> Follower:
    """Return a proxy with an agent, which knows these servers in this order."""
    issued_at.issued(name, folder)
    key = PrivateKey((folder / "proxy.key").read_bytes())
    pair = matched_pair((folder / "proxy.pem").read_bytes(), key)
    return Follower(Address(servers), str(name), pair, (folder / "ca.pem").read_bytes())


def rotation(server: Replica, *options: str) -> dict[str, Any]:
    """Run the command at a server; return what it prints."""
    arguments = ("certs", "rotate-root", "--json", *options, "--state", str(server.program.state))
    status, out, complaint = server.program.run(*arguments)
    assert status in (0, 1), complaint
    result: dict[str, Any] = json.loads(out)
    return result


async def test_root_is_rotated_although_the_leader_is_killed_in_the_middle(
    replicas: tuple[Replica, Replica], buyer: ProxyName, tmp_path: Path
) -> None:
    """The other server goes on, and sidecars of both trust each other throughout; a restarted one follows."""
    one, two = replicas
    for server in replicas:
        server.flags += RENEWAL
        await asyncio.to_thread(server.start)  # the first one leads
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    ours = await asyncio.to_thread(follower, buyer, one, tmp_path / "buyer", one, two)
    theirs = await asyncio.to_thread(follower, shop, two, tmp_path / "shop", two, one)
    old = ours.roots
    async with AsyncExitStack() as stack:
        for each in (ours, theirs):
            await stack.enter_async_context(each.running())
        checking = asyncio.create_task(_checking(ours, theirs))
        begun = await asyncio.to_thread(rotation, two)
        assert (begun["stage"], len(begun["other_servers"])) == ("trusting", 1)
        while (await asyncio.to_thread(rotation, one, "--status"))["stage"] == "trusting":
            await asyncio.sleep(0.1)
        one.running.process.send_signal(signal.SIGKILL)
        await until(lambda: rotation(two, "--status")["stage"] is None)
        await until(lambda: not TrustBundle.from_pems([old]).holds(TrustBundle.from_pems([theirs.roots])))
        await asyncio.to_thread(one.start)
        assert (await asyncio.to_thread(rotation, one, "--status"))["stage"] is None
        new = await asyncio.to_thread(follower, buyer, one, tmp_path / "again", one)
        assert new.roots == theirs.roots == ours.roots != old
        await stack.enter_async_context(new.running())
        assert new.mesh_roots == theirs.mesh_roots
        assert (new.chain, len(TrustBundle.from_pems([new.roots]).fingerprints)) == (ours.chain, 1)
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)
        assert checking.cancelled()
    for server in replicas:
        await asyncio.to_thread(server.running.stop)


async def test_servers_with_another_issuer_have_the_same_certificates(
    replicas: tuple[Replica, Replica], buyer: ProxyName, tmp_path: Path
) -> None:
    """The CA in files signs once for a service, whichever server needs the certificate first."""
    made = ca("files", datetime.now(UTC))
    made.put(tmp_path / "ca")
    files = [f"--set=ca_{name}={tmp_path / 'ca' / file}" for name, file in FILES.items()]
    for server in replicas:
        server.flags += (*RENEWAL, "--set=issuer=files", *files)
        await asyncio.to_thread(server.start)
    one, two = replicas
    ours = await asyncio.to_thread(follower, buyer, one, tmp_path / "buyer", one)
    theirs = await asyncio.to_thread(follower, buyer, two, tmp_path / "other", two)
    async with ours.running(agent=False), theirs.running(agent=False):
        assert ours.chain == theirs.chain
        assert is_signed_by_bundle(ours.chain, made.pem)
        assert TrustBundle.from_pems([ours.mesh_roots]).holds(TrustBundle.from_pems([made.pem]))
        assert ours.mesh_roots == theirs.mesh_roots
    for server in replicas:
        await asyncio.to_thread(server.running.stop)


async def _checking(*followers: Follower) -> None:
    """Verify again and again that each proxy accepts the certificates of the others."""
    while True:
        for one in followers:
            for other in followers:
                assert is_signed_by_bundle(one.chain, other.mesh_roots), f"{other.name} refuses {one.name}"
        await asyncio.sleep(0.05)
