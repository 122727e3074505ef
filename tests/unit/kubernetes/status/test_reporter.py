"""What is told of delivery: problems that come and go, roll-outs from what is published and acknowledged."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import MeshSettings
from certs.issuers.authority import CertificateAuthority
from certs.state.pair_files import PairFiles
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.assembly import Delivery, delivery
from meshwright.delivery.certificates.certificates import ServiceCertificates
from meshwright.delivery.mesh_sources import Paces
from meshwright.delivery.model import Model
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.snapshots.translation import translation
from meshwright.delivery.snapshots.wanted_groups import ConnectedGroups
from meshwright.delivery.timing.debounce import Pace
from meshwright.delivery.wave import ADMISSIONS, NAMED, Cause, Change, Wave
from meshwright.kube.lease import Lease
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.reporter import Reporter
from meshwright.kubernetes.status.rollouts import Progress, Rollouts
from meshwright.kubernetes.status.writer import Writer
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import ADMISSION, WORKLOAD
from meshwright.mesh.names import IpAddress, Port, TrustDomain
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.values.picture import Picture
from meshwright.mesh.workload import Explicit, Upstream, Workload
from meshwright.providers.sources import Sources
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import values as a
from tests.meshes.sources import MemorySource
from xds.cache import NodeKey
from xds.protocol.resources.resource import Version
from xds.protocol.wire import Nonce, Response
from xds.stream_status import Variant

SHOP, BUYER = "shop", "buyer"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
PACE = Pace(0.001, 0.01)


def workload(name: str, address: str, generation: int = 1) -> SourcedObject:
    """Make a Workload of the cluster."""
    value = a.workload(name, address)
    return SourcedObject(a.object_key(value), value, InCluster("east", address, generation))


def twin() -> SourcedObject:
    """Make a buyer whose sidecar claims to be the shop's."""
    value = workload(BUYER, "10.0.0.2").value
    assert isinstance(value, Workload)
    claimed = replace(value, uuid=a.workload(SHOP, "10.0.0.1").uuid)
    return SourcedObject(key(BUYER), claimed, InCluster("east", "9", 2))


def key(name: str) -> ObjectKey:
    """Return a Workload's key."""
    return workload(name, "10.0.0.1").key


def node(name: str) -> NodeKey:
    """Return the node of a workload's proxy."""
    return NodeKey(f"{name}-uuid.{name}.default")


def wave_of_admissions() -> Wave:
    """Make a wave in which proxies have come into traffic, of which it names one."""
    return Wave(1000, (Cause(ADMISSION, node(SHOP), ADMISSIONS, Change.ADDED),), 99, 0.0, 0.0, NOW)


class Noticed:
    """In the writer's place: the test looks at what is to be written."""

    def __init__(self) -> None:
        self.changed, self.known = asyncio.Event(), asyncio.Event()

    async def lead(self) -> None:
        """Write nothing."""
        await asyncio.Event().wait()


class Plane:
    """Everything between a source in memory and streams, and what reports on it."""

    def __init__(self, state: Path, now: datetime) -> None:
        first = [workload(SHOP, "10.0.0.1"), workload(BUYER, "10.0.0.2")]
        rest = a.objects(MeshConfig(permissive=True), a.service(SHOP, a.port(80)))
        self.source = MemorySource("kubernetes", {each.key: each for each in first} | rest)
        authority = CertificateAuthority.open(state, TrustDomain("cluster.local"), now)
        translate, preview = (translation(EnvoyDriver(), secrets=each) for each in (True, False))
        self.delivery: Delivery = delivery(
            sources=Sources((self.source,)),
            paces=Paces(PACE, PACE),
            readiness=EndpointReadiness((), EndpointAdmission.OFF),
            certificates=ServiceCertificates(authority, PairFiles(state), lambda _: None),
            new_model=lambda: Model(translate, MeshSettings(), wanted=ConnectedGroups, preview=preview),
            new_quarantine=lambda held: Quarantine(empty, acknowledged=held),
            lingering=300.0,
            meter=Metrics(),
            clock=lambda: now,
        )
        self.standing, self.writer = ObjectStatusTable("east", {WORKLOAD}), Noticed()
        self.rollouts: list[Rollouts] = []
        self.seconds = 100.0
        lease, monotonic = cast("Lease", None), lambda: self.seconds
        self.reporter = Reporter(self.delivery, self.standing, lease, self._write, monotonic)

    def _write(self, rollouts: Rollouts) -> Writer:
        self.rollouts.append(rollouts)
        return cast("Writer", self.writer)

    async def start(self) -> None:
        """Begin with all there is."""
        await self.delivery.loop.wave()
        await self.told()

    def come(self, name: str) -> None:
        """Let a proxy come."""
        self.delivery.registry.opened(node(name), "127.0.0.1:1", Variant.DELTA)
        self.delivery.cache.watch(node(name), lambda: None)

    def acknowledge(self, name: str) -> None:
        """Have a proxy acknowledge all that it is served."""
        snapshot = self.delivery.cache.snapshot(node(name))
        assert snapshot is not None
        for each in snapshot.types():
            response = Response(each, Version("v"), Nonce("n"), tuple(snapshot.ordered(each)))
            self.delivery.answers.answered(node(name), response, None)

    async def change(self, *changed: SourcedObject) -> None:
        """Have objects be other, and make a wave."""
        self.source.change({each.key: each for each in changed})
        await self.delivery.loop.wave()

    async def told(self) -> tuple[ObjectKey, ...]:
        """Look, and return of what something else is to be reported."""
        await self.reporter.look()
        assert self.writer.changed.is_set() is self.standing.is_touched
        self.writer.changed.clear()
        return self.standing.take()

    def codes(self) -> set[str]:
        """Return the codes of what is wrong with the two Workloads."""
        return {problem.code for name in (SHOP, BUYER) for problem in self.standing.problems(key(name))}

    def progress(self, name: str) -> Progress | None:
        """Return how far the last change of a Workload has come."""
        return self.rollouts[0].progress(key(name))


@pytest.fixture
async def plane(tmp_path: Path, now: datetime) -> Plane:
    """Return a plane that has begun."""
    made = Plane(tmp_path, now)
    await made.start()
    return made


async def test_a_change_is_followed_to_those_whom_it_concerns(plane: Plane) -> None:
    """What was there at the start is no change; a proxy that is configured by it has to acknowledge it."""
    assert plane.progress(SHOP) is None
    for name in (SHOP, BUYER):
        plane.come(name)
    await plane.delivery.loop.attend()
    for name in (SHOP, BUYER):
        plane.acknowledge(name)
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    assert await plane.told() == (key(SHOP),)
    concerned = plane.progress(SHOP)
    assert concerned is not None
    assert (concerned.applied, concerned.of > 0) == (0, True)
    assert plane.standing.generation(key(SHOP)) == 2
    for name in (SHOP, BUYER):
        plane.acknowledge(name)
    assert await plane.told() == (key(SHOP),)
    assert plane.progress(SHOP) == Progress(concerned.of, concerned.of)
    assert plane.progress(BUYER) is None, "it has not changed"


async def test_what_changes_right_after_the_start_has_changed(tmp_path: Path, now: datetime) -> None:
    """Before anybody has looked for the first time."""
    plane = Plane(tmp_path, now)
    await plane.delivery.loop.wave()
    plane.come(SHOP)
    await plane.delivery.loop.attend()
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    await plane.told()
    assert plane.progress(SHOP) == Progress(0, 1)


async def test_what_comes_into_traffic_together_has_one_rollout(plane: Plane) -> None:
    """Who has applied the change counts once, though it then has to apply that one more is in traffic.

    And a wave that is published in parts counts nobody again.
    """
    for name in (SHOP, BUYER):
        plane.come(name)
    await plane.delivery.loop.attend()
    for name in (SHOP, BUYER):
        plane.acknowledge(name)
    await plane.change(workload(SHOP, "10.0.0.9", 2), workload(BUYER, "10.0.0.8", 2))
    await plane.told()
    for name in (SHOP, BUYER):
        plane.acknowledge(name)
    await plane.told()
    assert plane.progress(SHOP) == plane.progress(BUYER) == Progress(2, 2)
    assert plane.delivery.loop.model is not None
    came = dict.fromkeys(map(ProxyName.parse, (node(SHOP), node(BUYER))), Admission.ADMITTED)
    plane.delivery.loop.model.admissions = Picture(came)
    wave = wave_of_admissions()
    group = plane.delivery.cache.group(node(SHOP))
    for moved in ({}, {node(SHOP): group}, {node(BUYER): group}):
        plane.reporter.published(wave, Step(members=moved), {})
        await plane.told()
    assert plane.progress(SHOP) == plane.progress(BUYER) == Progress(2, 2)


async def test_everybody_who_comes_into_traffic_has_a_rollout(plane: Plane) -> None:
    """A wave names some of its causes: more than that may come at once."""
    names = [f"till-{number}" for number in range(NAMED + 8)]
    await plane.change(*(workload(name, f"10.0.1.{number}") for number, name in enumerate(names)))
    await plane.told()
    plane.come(names[-1])
    await plane.delivery.loop.attend()
    assert plane.delivery.loop.model is not None
    came = dict.fromkeys(map(ProxyName.parse, map(node, names)), Admission.ADMITTED)
    plane.delivery.loop.model.admissions = Picture(came)
    plane.reporter.published(wave_of_admissions(), Step(), {})
    assert {plane.progress(name) for name in names} == {Progress(0, 40)}
    await plane.told()
    assert {plane.progress(name) for name in names} == {Progress(0, 1)}, "the others are not connected"


async def test_what_a_source_has_brought_and_no_wave_has_taken_is_not_told_yet(plane: Plane) -> None:
    """A burst is waited for: a look meanwhile would take the change for one that concerns nobody."""
    plane.come(SHOP)
    await plane.delivery.loop.attend()
    plane.acknowledge(SHOP)
    plane.source.change({key(SHOP): workload(SHOP, "10.0.0.9", 2)})
    plane.delivery.gathering.look()
    await plane.told()
    assert (plane.standing.generation(key(SHOP)), plane.progress(SHOP)) == (1, None)
    await plane.delivery.loop.wave()
    await plane.told()
    assert (plane.standing.generation(key(SHOP)), plane.progress(SHOP)) == (2, Progress(0, 1))


async def test_what_is_about_to_be_published_is_not_told_to_be_applied(plane: Plane) -> None:
    """A look within the wave would take the roll-out before for that of the new generation."""
    plane.come(SHOP)
    await plane.delivery.loop.attend()
    plane.acknowledge(SHOP)
    await plane.change(workload(SHOP, "10.0.0.8", 2))
    plane.acknowledge(SHOP)
    await plane.told()
    assert plane.progress(SHOP) == Progress(1, 1)
    plane.source.change({key(SHOP): workload(SHOP, "10.0.0.9", 3)})
    plane.delivery.gathering.look()
    plane.delivery.loop.doing = "computing"
    assert await plane.told() == ()
    assert (plane.standing.generation(key(SHOP)), plane.progress(SHOP)) == (2, Progress(1, 1))
    plane.delivery.loop.doing = ""
    await plane.delivery.loop.wave()
    assert await plane.told() == (key(SHOP),)
    assert (plane.standing.generation(key(SHOP)), plane.progress(SHOP)) == (3, Progress(0, 1))


async def test_a_change_that_concerns_nobody_is_over_at_once(plane: Plane) -> None:
    """And where only the place of an object is another one, what was said of its roll-out stays."""
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    assert await plane.told() == (key(SHOP),)
    assert plane.progress(SHOP) == Progress(0, 0)
    same = workload(BUYER, "10.0.0.2")
    await plane.change(replace(same, origin=InCluster("east", "900", 3)))
    assert await plane.told() == (key(BUYER),)
    assert (plane.progress(BUYER), plane.standing.generation(key(BUYER))) == (None, 3)


async def test_an_object_that_is_gone_is_forgotten(plane: Plane) -> None:
    """What is said of it is nobody's any more."""
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    await plane.told()
    plane.source.change({key(SHOP): None})
    await plane.delivery.loop.wave()
    assert await plane.told() == (key(SHOP),)
    assert (plane.progress(SHOP), plane.standing.generation(key(SHOP))) == (None, None)


async def test_problems_come_and_go_with_what_finds_them(plane: Plane) -> None:
    """Those of the source, and those between objects, which are looked for after the wave."""
    wrong = Problem(
        code="MW1013",
        severity=Severity.ERROR,
        origin=InCluster("east", "8", 2),
        key=key(SHOP),
        field="spec.address",
        expected="must be an IP address",
    )
    plane.source.said = (wrong,)
    await plane.delivery.loop.wave()
    assert await plane.told() == (key(SHOP),)
    assert list(plane.standing.problems(key(SHOP))) == [wrong]
    plane.source.said = ()
    await plane.change(twin())
    assert set(await plane.told()) >= {key(SHOP)}
    assert wrong not in plane.standing.problems(key(SHOP))
    assert plane.codes() >= {"MW2031"}


async def test_a_wave_that_failed_mends_nothing(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """All problems are said anew with the next one: meanwhile nothing is known, and nothing is told."""
    await plane.change(twin())
    await plane.told()
    assert plane.codes() >= {"MW2031"}
    with monkeypatch.context() as broken:
        broken.setattr(Model, "follow", lambda *_: 1 / 0)
        await plane.delivery.loop.wave()
    assert plane.delivery.loop.model is None
    assert await plane.told() == ()
    assert plane.codes() >= {"MW2031"}
    await plane.delivery.loop.wave()
    assert await plane.told() == ()
    assert plane.codes() >= {"MW2031"}


async def test_a_missing_upstream_is_in_the_status_of_a_workload_at_once(plane: Plane) -> None:
    """Conditions say how an object is now; only Events wait for what may come."""
    upstream = Upstream(a.service_key("till"), Port(80), IpAddress("127.0.0.1"), Port(9001))
    found = workload(BUYER, "10.0.0.2", 2)
    assert isinstance(found.value, Workload)
    await plane.change(replace(found, value=replace(found.value, interception=Explicit(None, (upstream,)))))
    await plane.told()
    assert plane.codes() == {"MW2033"}


async def test_an_event_waits_for_what_may_come(plane: Plane) -> None:
    """A Service without Pods is passed on after ten seconds, and only if it still has none."""
    service = a.service("late")
    late = SourcedObject(a.object_key(service), service, InCluster("east", "8"))
    await plane.change(late)
    await plane.told()
    assert not plane.standing.problems(late.key)
    plane.seconds += 9.0
    await plane.told()
    assert not plane.standing.problems(late.key)
    plane.seconds += 1.0
    await plane.told()
    assert {each.code for each in plane.standing.problems(late.key)} == {"MW2020"}
