"""Tests of a running loop with the DNS as a following source: publications and DNS questions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from google.protobuf import any_pb2

from catalog.store.view import MeshSettings
from certs.state.pair_files import PairFiles
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.certificates.certificates import ServiceCertificates
from meshwright.delivery.loop import Loop
from meshwright.delivery.mesh_sources import MeshSources, Paces
from meshwright.delivery.model import Model
from meshwright.delivery.presence import ConnectionGracePeriod, Presence
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.snapshots.translation import translation
from meshwright.delivery.timing.debounce import Pace
from meshwright.delivery.wave import Wave
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import IpAddress, TrustDomain
from meshwright.mesh.service import DnsName, Service
from meshwright.providers.dns.records import DnsAnswer, Question, RecordType
from meshwright.providers.dns.resolver import Resolver
from meshwright.providers.dns.source import DnsSource
from meshwright.providers.sources import Sources
from meshwright.sidecars.envoy.driver import EnvoyDriver
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from tests.meshes import values as a
from tests.meshes.sources import MemorySource, instead
from tests.tools.own_authority import own_authority
from xds.cache import GroupKey, SnapshotCache
from xds.protocol.resources.resource import ENDPOINT, ResourceName
from xds.protocol.resources.snapshot import Snapshot

ADDRESS = IpAddress("10.0.0.1")
FOUND = ResourceName("default/db|8080")
PACE = Pace(0.001, 0.01)
MESH = a.objects(MeshConfig(permissive=True), a.workload("client", "10.0.0.9"), a.workload("one", ADDRESS))


def _db() -> Service:
    return Service(a.service_key("db"), (a.port(80),), dns_names=(DnsName("db.test"),))


class Nameserver(Resolver):
    """A resolver that knows one address, answers once `open` is set, and records its questions."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> DnsAnswer:
        """Record the question, and answer once `open` is set."""
        self.asked.append(question)
        await self.open.wait()
        return DnsAnswer(3600, (ADDRESS,) if question.record is RecordType.A else (), nameserver="10.9.0.1")


class Running:
    """A loop over a source in memory and the DNS.

    `published` are the addresses of the Service's endpoints, one entry for each change of them; None means
    that there is no cluster. `asked` is the number of DNS questions at each entry, and `causes` are the
    causes of its waves.
    """

    def __init__(self, state: Path, now: datetime) -> None:
        self.cluster = MemorySource("cluster", MESH)
        self.nameserver = Nameserver()
        dns = DnsSource(self.nameserver, lambda: now, patience=timedelta(0))
        self.sources = Sources((self.cluster,), following=(dns,))
        self.published: list[set[str] | None] = []
        self.asked: list[int] = []
        self.causes: list[str] = []
        self._heard = asyncio.Event()
        metrics = Metrics()
        self.gathering = MeshSources(self.sources, Paces(PACE, PACE), metrics)
        translate = translation(EnvoyDriver())
        self.loop = Loop(
            self.gathering,
            lambda: Model(translate, MeshSettings()),
            ServiceCertificates(
                own_authority(state, TrustDomain("cluster.local"), now),
                PairFiles(state),
                lambda _: None,
            ),
            Publisher(SnapshotCache(), Quarantine(lambda _: None), metrics, self._told),
            clock=lambda: now,
            meter=metrics,
            on_state=lambda _: None,
            presence=Presence(ConnectionGracePeriod(300.0)),
        )

    def _told(self, wave: Wave, step: Step, _: Mapping[GroupKey, Snapshot]) -> None:
        for group, snapshot in step.snapshots.items():
            if snapshot is not None and "|client|" in group:
                resource = snapshot.resources(ENDPOINT).get(FOUND)
                addresses = None if resource is None else _addresses(resource.body)
                if not self.published or addresses != self.published[-1]:
                    self.published.append(addresses)
                    self.asked.append(len(self.nameserver.asked))
                    self.causes += map(str, wave.causes)
        self._heard.set()

    async def until_found(self) -> None:
        """Wait until the Service has its endpoint."""
        while self.published[-1] != {ADDRESS}:
            self._heard.clear()
            await self._heard.wait()

    async def until(self, publications: int) -> None:
        """Wait until `published` has so many entries."""
        while len(self.published) < publications:
            self._heard.clear()
            await self._heard.wait()


def _addresses(body: bytes) -> set[str]:
    cluster_load_assignment = endpoint_pb2.ClusterLoadAssignment()
    assert any_pb2.Any.FromString(body).Unpack(cluster_load_assignment)
    return {
        lb_endpoint.endpoint.address.socket_address.address
        for place in cluster_load_assignment.endpoints
        for lb_endpoint in place.lb_endpoints
    }


@pytest.fixture
async def running(tmp_path: Path, now: datetime) -> AsyncIterator[Running]:
    """Run the loop and its sources after a first wave."""
    made = Running(tmp_path, now)
    await made.sources.first()
    await made.loop.wave()
    works = [made.loop.run(), *(work for _, work in made.sources.works(made.gathering.changed))]
    tasks = [asyncio.create_task(work) for work in works]
    await asyncio.sleep(0)
    yield made
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_new_service_is_published_together_with_its_dns_endpoints(running: Running) -> None:
    """If the nameserver answers soon, no wave publishes the Service without its endpoint."""
    running.nameserver.open.set()
    running.cluster.change(a.objects(_db()))
    await running.until_found()
    assert running.published == [None, {ADDRESS}]
    assert "EndpointSlice default/db-dns added (dns (db.test at 10.9.0.1))" in running.causes


async def test_slow_nameserver_does_not_delay_a_new_service(running: Running) -> None:
    """The Service is published without endpoints, with its two questions (A, AAAA) already asked.

    A later wave adds the endpoint once the nameserver answers.
    """
    running.cluster.change(a.objects(_db()))
    await running.until(2)
    assert (running.published[1:], running.asked[1:]) == ([set()], [2])
    running.nameserver.open.set()
    await running.until_found()
    assert running.published == [None, set(), {ADDRESS}]


async def test_removed_service_loses_its_dns_endpoints_and_is_resolved_again(running: Running) -> None:
    """A Service that returns is resolved anew: two questions (A, AAAA) for each of its two lives."""
    running.nameserver.open.set()
    for turn in (1, 2):
        running.cluster.change(a.objects(_db()))
        await running.until_found()
        running.cluster.change(dict.fromkeys(a.objects(_db())))
        await running.until(1 + 2 * turn)
    assert running.published == [None, {ADDRESS}, None, {ADDRESS}, None]
    assert len(running.nameserver.asked) == 4


async def test_changed_node_of_a_workload_changes_no_snapshot(tmp_path: Path, now: datetime) -> None:
    """The node is only shown to users; no proxy's configuration depends on it."""
    running = Running(tmp_path, now)
    await running.loop.wave()
    before = dict(running.loop.state.published.snapshots)
    moved = replace(a.workload("one", ADDRESS), node="worker-2")
    running.cluster.change(instead([moved]))
    await running.loop.wave()
    after = dict(running.loop.state.published.snapshots)
    assert list(map(id, after.values())) == list(map(id, before.values()))
    assert before
    assert running.loop.state.view is not None
    assert a.object_key(moved) in running.loop.state.view.sourced
