"""Engines of the shared store: what servers need to reach them, and the faults that a test can cause.

The other modules of this folder know an engine by this contract only.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from meshwright.controller.sharing.store.backends import SECRETS
from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.client import Client
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.store import EtcdRecords
from meshwright.records.kubernetes.store import KubernetesRecords
from tests.kubernetes.etcd.cut_relay import Relay, relay_to
from tests.kubernetes.etcd.members import RealMember
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.keys import LOOPBACK

DOMAIN: Final = "cluster.local"
"""Trust domain of the mesh, which is a part of the keys in etcd."""


@dataclass(frozen=True)
class Network:
    """The network between one server and the store: a relay to each member of the store."""

    relays: Sequence[Relay]

    def cut(self) -> None:
        """End all connections, and every new one at once."""
        for relay in self.relays:
            relay.cut()

    def silence(self) -> None:
        """Pass no bytes any more, while all connections stay open."""
        for relay in self.relays:
            relay.silence()

    def slow(self, seconds: float) -> None:
        """Let each answer be late by this time."""
        for relay in self.relays:
            relay.delay = seconds

    def heal(self) -> None:
        """Pass bytes, and take connections again."""
        for relay in self.relays:
            relay.heal()


class Engine(Protocol):
    """A running store for several servers, with a network for each of them."""

    @property
    def name(self) -> str:
        """Return the name of the setting."""

    @property
    def networks(self) -> Mapping[str, "Network"]:
        """Return the network between each server and the store, by the server's name."""

    def flags(self, server: str) -> Sequence[str]:
        """Return the flags by which this server reaches the store."""

    def environment(self) -> Mapping[str, str]:
        """Return the variables that every server needs."""

    def records(self, client: str) -> RecordStore:
        """Return a client that no fault concerns, for changes by hand; for the test's event loop."""

    async def kill(self) -> None:
        """Kill the store."""

    async def again(self) -> None:
        """Start the killed store again, with its data."""

    async def lose_quorum(self) -> None:
        """Kill so many members that the rest cannot write."""

    async def regain_quorum(self) -> None:
        """Start the killed members again."""

    async def save(self) -> None:
        """Save a snapshot of all data."""

    async def restore(self) -> None:
        """Replace all data by the snapshot, and return once the store answers."""


@dataclass
class KubernetesEngine:
    """Records in a namespace of a Kubernetes API, whose etcd has one member."""

    cluster: RunningCluster
    api: Api
    home: str
    folder: Path
    networks: dict[str, Network] = field(default_factory=dict)
    name: str = "kubernetes"

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, cluster: RunningCluster, home: str, folder: Path, servers: Sequence[str]
    ) -> AsyncIterator["KubernetesEngine"]:
        """Run a relay for each server until the end of the block."""
        async with AsyncExitStack() as ends:
            api = await ends.enter_async_context(Api(find_connection(cluster.kubeconfig, "")))
            engine = cls(cluster, api, home, folder)
            target = Endpoint(LOOPBACK, cluster.place.api, tls=True)
            for server in servers:
                relay = await ends.enter_async_context(relay_to(target))
                engine.networks[server] = Network([relay])
                url = f"https://{LOOPBACK}:{relay.port}"
                cluster.keys.kubeconfig(engine._kubeconfig(server), "admin", url)
            yield engine

    def flags(self, server: str) -> Sequence[str]:
        """Return the flags for the records, and for a source without objects."""
        kubeconfig = ("--kubernetes", "--kubeconfig", str(self._kubeconfig(server)))
        return (*kubeconfig, "--namespaces", self.home, "--set", "store=kubernetes")

    def environment(self) -> Mapping[str, str]:
        """Return the namespace of the records."""
        return {"POD_NAMESPACE": self.home}

    def records(self, client: str) -> RecordStore:
        """Return a client without a relay."""
        return KubernetesRecords(
            self.api,
            self.home,
            ReplicaId(client),
            lambda: datetime.now(UTC),
            in_secret=SECRETS.__contains__,
        )

    async def kill(self) -> None:
        """Kill the API server."""
        await asyncio.to_thread(self.cluster.api.kill)

    async def again(self) -> None:
        """Start the API server."""
        await asyncio.to_thread(self.cluster.api.again)

    async def lose_quorum(self) -> None:
        """Kill etcd: the API server answers with errors, or from its cache."""
        await asyncio.to_thread(self.cluster.etcd.kill)

    async def regain_quorum(self) -> None:
        """Start etcd."""
        await asyncio.to_thread(self.cluster.etcd.again)

    async def save(self) -> None:
        """Copy the data of etcd while etcd is down."""
        await self.lose_quorum()
        await asyncio.to_thread(shutil.copytree, self._data, self._saved)
        await self.regain_quorum()

    async def restore(self) -> None:
        """Put the copy in the place of the data, and start API server and etcd anew."""
        await self.kill()
        await self.lose_quorum()
        await asyncio.to_thread(shutil.rmtree, self._data)
        await asyncio.to_thread(shutil.move, self._saved, self._data)
        await self.regain_quorum()
        await self.again()

    def _kubeconfig(self, server: str) -> Path:
        return self.folder / f"{server}.kubeconfig"

    @property
    def _data(self) -> Path:
        return self.cluster.place.folder / "etcd"

    @property
    def _saved(self) -> Path:
        return self.folder / "saved-etcd"


@dataclass
class EtcdEngine:
    """Records in an etcd with three members, of which each server knows all."""

    members: Sequence[RealMember]
    client: Client
    folder: Path
    networks: dict[str, Network] = field(default_factory=dict)
    name: str = "etcd"

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, members: Sequence[RealMember], folder: Path, servers: Sequence[str]
    ) -> AsyncIterator["EtcdEngine"]:
        """Run relays from each server to all members until the end of the block."""
        async with AsyncExitStack() as ends:
            access = Access(tuple(member.endpoint for member in members))
            engine = cls(members, await ends.enter_async_context(Client(access)), folder)
            for server in servers:
                relays = [await ends.enter_async_context(relay_to(member.endpoint)) for member in members]
                engine.networks[server] = Network(relays)
            yield engine

    def flags(self, server: str) -> Sequence[str]:
        """Return the addresses of the relays."""
        urls = ",".join(f"http://{LOOPBACK}:{relay.port}" for relay in self.networks[server].relays)
        return ("--set", "store=etcd", "--set", f"etcd_endpoints={urls}")

    def environment(self) -> Mapping[str, str]:
        """Return nothing: settings are flags."""
        return {}

    def records(self, client: str) -> RecordStore:
        """Return a client without relays."""
        return EtcdRecords(self.client, Layout(DOMAIN), ReplicaId(client))

    async def kill(self) -> None:
        """Kill all members."""
        for member in self.members:
            await asyncio.to_thread(member.kill)

    async def again(self) -> None:
        """Start all members."""
        await self._start(self.members)

    async def lose_quorum(self) -> None:
        """Kill all members but one."""
        for member in self.members[1:]:
            await asyncio.to_thread(member.kill)

    async def regain_quorum(self) -> None:
        """Start the killed members."""
        await self._start(self.members[1:])

    async def save(self) -> None:
        """Copy the data of all members while they are down."""
        await self.kill()
        for number, member in enumerate(self.members):
            await asyncio.to_thread(member.copy_data, self.folder / f"saved-{number}")
        await self.again()

    async def restore(self) -> None:
        """Put the copies in the place of the data."""
        await self.kill()
        for number, member in enumerate(self.members):
            await asyncio.to_thread(member.restore, self.folder / f"saved-{number}")
        await self.again()

    async def _start(self, members: Sequence[RealMember]) -> None:
        for member in members:  # all of them, before the first one can be ready
            await asyncio.to_thread(member.start)
        for member in members:
            await asyncio.to_thread(member.service.until_ready)
