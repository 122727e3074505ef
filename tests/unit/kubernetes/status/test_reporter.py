"""Tests of the reporter of delivery: problems, and roll-outs from publications and acknowledgements."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import MeshSettings
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
from meshwright.kubernetes.status import reporter as reporters
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.other_progress import ObjectProgress
from meshwright.kubernetes.status.reporter import Reporter
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.writer import Decisions, Writer
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import ADMISSION, GATEWAY, WORKLOAD
from meshwright.mesh.names import IpAddress, Port, TrustDomain
from meshwright.mesh.objects import MeshObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.values.picture import Picture
from meshwright.mesh.workload import Edge, Explicit, Upstream, Workload
from meshwright.providers.sources import Sources
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.meshes.sources import MemorySource
from tests.tools.own_authority import own_authority
from xds.cache import NodeKey
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import Version
from xds.protocol.wire import DeltaRequest, Nonce, Response
from xds.stream_status import Variant

SHOP, BUYER = "shop", "buyer"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
PACE = Pace(0.001, 0.01)


def workload(name: str, address: str, generation: int = 1) -> SourcedObject:
    """Return a Workload of the cluster."""
    value = a.workload(name, address)
    return SourcedObject(a.object_key(value), value, InCluster("east", address, generation))


def twin() -> SourcedObject:
    """Return a buyer whose uuid is the shop's."""
    value = workload(BUYER, "10.0.0.2").value
    assert isinstance(value, Workload)
    claimed = replace(value, uuid=a.workload(SHOP, "10.0.0.1").uuid)
    return SourcedObject(key(BUYER), claimed, InCluster("east", "9", 2))


def key(name: str) -> ObjectKey:
    """Return the key of a Workload."""
    return workload(name, "10.0.0.1").key


def node(name: str) -> NodeKey:
    """Return the node key of a workload's proxy."""
    return NodeKey(f"{name}-uuid.{name}.default")


def wave_of_admissions() -> Wave:
    """Return a wave of a thousand admitted proxies that names only one of them."""
    return Wave(1000, (Cause(ADMISSION, node(SHOP), ADMISSIONS, Change.ADDED),), 99, 0.0, 0.0, NOW)


class FakeWriter:
    """A replacement for the writer, so that tests examine the pending reports."""

    def __init__(self) -> None:
        self.changed, self.known = asyncio.Event(), asyncio.Event()

    async def lead(self) -> None:
        """Write nothing."""
        await asyncio.Event().wait()


class Plane:
    """Delivery from a source in memory to streams, with its reporter."""

    def __init__(self, state: Path, now: datetime) -> None:
        first = [workload(SHOP, "10.0.0.1"), workload(BUYER, "10.0.0.2")]
        rest = a.objects(MeshConfig(permissive=True), a.service(SHOP, a.port(80)))
        self.source = MemorySource(
            "kubernetes", {sourced_object.key: sourced_object for sourced_object in first} | rest
        )
        authority = own_authority(state, TrustDomain("cluster.local"), now)
        translate, preview = (translation(EnvoyDriver(), secrets=item) for item in (True, False))
        self.delivery: Delivery = delivery(
            sources=Sources((self.source,)),
            paces=Paces(PACE, PACE),
            readiness=EndpointReadiness((), EndpointAdmission.OFF),
            certificates=ServiceCertificates(authority, PairFiles(state), lambda _: None),
            new_model=lambda: Model(translate, MeshSettings(), wanted=ConnectedGroups, preview=preview),
            new_quarantine=lambda held, _: Quarantine(empty, acknowledged=held),
            lingering=300.0,
            meter=Metrics(),
            clock=lambda: now,
        )
        self.standing, self.writer = ObjectStatusTable("east", {WORKLOAD}, gateways={GATEWAY}), FakeWriter()
        self.progresses: list[Callable[[ObjectKey], Progress | None]] = []
        self.seconds = 100.0
        lease, monotonic = cast("Lease", None), lambda: self.seconds
        self.reporter = Reporter(self.delivery, self.standing, lease, self._write, monotonic)

    def _write(self, progress: Callable[[ObjectKey], Progress | None], decisions: Decisions) -> Writer:
        self.progresses.append(progress)
        self.decisions = decisions
        return cast("Writer", self.writer)

    async def start(self) -> None:
        """Run the first wave and the first look."""
        await self.delivery.loop.wave()
        await self.told()

    def come(self, name: str) -> None:
        """Connect the workload's proxy."""
        self.delivery.registry.opened(node(name), "127.0.0.1:1", Variant.DELTA)
        self.delivery.cache.watch(node(name), lambda: None)

    def acknowledge(self, name: str) -> None:
        """Acknowledge, for a proxy, every resource of its snapshot."""
        snapshot = self.delivery.cache.snapshot(node(name))
        assert snapshot is not None
        for type_url in snapshot.types():
            response = Response(type_url, Version("v"), Nonce("n"), tuple(snapshot.ordered(type_url)))
            self.delivery.answers.answered(node(name), response, None)

    async def change(self, *changed: SourcedObject) -> None:
        """Change objects in the source and run a wave."""
        self.source.change({sourced_object.key: sourced_object for sourced_object in changed})
        await self.delivery.loop.wave()

    async def told(self) -> tuple[ObjectKey, ...]:
        """Run one look of the reporter and return the objects with a report due."""
        await self.reporter.look()
        assert self.writer.changed.is_set() is self.standing.is_touched
        self.writer.changed.clear()
        return self.standing.take()

    def codes(self) -> set[str]:
        """Return the codes of the problems of both Workloads."""
        return {problem.code for name in (SHOP, BUYER) for problem in self.standing.problems(key(name))}

    def progress(self, name: str) -> Progress | None:
        """Return the progress of a Workload's last change."""
        return self.progresses[0](key(name))


@pytest.fixture
async def plane(tmp_path: Path, now: datetime) -> Plane:
    """Return a plane after its first wave and look."""
    made = Plane(tmp_path, now)
    await made.start()
    return made


async def test_change_has_a_rollout_until_concerned_proxies_have_acknowledged_it(plane: Plane) -> None:
    """Objects that were there at the start have no roll-out.

    A changed object has one until every concerned proxy has acknowledged.
    """
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
    assert (concerned.applied, concerned.total > 0) == (0, True)
    assert plane.standing.generation(key(SHOP)) == 2
    for name in (SHOP, BUYER):
        plane.acknowledge(name)
    assert await plane.told() == (key(SHOP),)
    assert plane.progress(SHOP) == Progress(concerned.total, concerned.total)
    assert plane.progress(BUYER) is None, "it has not changed"


async def test_change_before_the_first_look_has_a_rollout(tmp_path: Path, now: datetime) -> None:
    """The first wave is the baseline, even if the reporter has not looked yet."""
    plane = Plane(tmp_path, now)
    await plane.delivery.loop.wave()
    plane.come(SHOP)
    await plane.delivery.loop.attend()
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    await plane.told()
    assert plane.progress(SHOP) == Progress(0, 1)


async def test_proxies_admitted_together_are_counted_once_in_a_rollout(plane: Plane) -> None:
    """A proxy that has applied the change stays counted once, although it then applies an admission too.

    A wave that is published in parts does not count proxies again.
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


async def test_every_admitted_proxy_has_a_rollout(plane: Plane) -> None:
    """A wave names only some of its causes, so the admissions come from the model."""
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


async def test_change_that_no_wave_has_taken_is_not_reported(plane: Plane) -> None:
    """The loop still gathers a burst. A report now would take the change for one that concerns no proxy."""
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


async def test_change_is_not_reported_while_a_wave_computes(plane: Plane) -> None:
    """A look during the wave would attribute the previous roll-out to the new generation."""
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


async def test_change_that_concerns_no_proxy_is_complete_at_once(plane: Plane) -> None:
    """If only the origin of an object changes, its generation is reported and it has no new roll-out."""
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    assert await plane.told() == (key(SHOP),)
    assert plane.progress(SHOP) == Progress(0, 0)
    same = workload(BUYER, "10.0.0.2")
    await plane.change(replace(same, origin=InCluster("east", "900", 3)))
    assert await plane.told() == (key(BUYER),)
    assert (plane.progress(BUYER), plane.standing.generation(key(BUYER))) == (None, 3)


async def test_leader_adds_the_progress_at_other_servers(plane: Plane) -> None:
    """A leader without a concerned proxy reports the proxies of others, and nothing once it does not lead."""
    answers: list[tuple[Mapping[str, Iterable[ObjectProgress]], Iterable[str]] | None] = [
        ({"b": [ObjectProgress(key(SHOP), 2, 0, 1)]}, ["c"]),
        ({"b": [ObjectProgress(key(SHOP), 2, 1, 1)], "c": []}, []),
        None,
    ]

    async def ask() -> tuple[Mapping[str, Iterable[ObjectProgress]], Iterable[str]] | None:
        return answers.pop(0)

    plane.reporter.ask_others(ask)
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    assert await plane.told() == (key(SHOP),)
    assert plane.progress(SHOP) == Progress(0, 1, "3 servers", ("c",))
    assert await plane.told() == (key(SHOP),)
    assert plane.progress(SHOP) == Progress(1, 1, "3 servers")
    await plane.told()
    assert plane.progress(SHOP) == Progress(0, 0)
    assert plane.reporter.own_progress() == (ObjectProgress(key(SHOP), 2, 0, 0),)


async def test_removed_object_is_forgotten(plane: Plane) -> None:
    """Progress and generation of a removed object are dropped, after one last report."""
    await plane.change(workload(SHOP, "10.0.0.9", 2))
    await plane.told()
    plane.source.change({key(SHOP): None})
    await plane.delivery.loop.wave()
    assert await plane.told() == (key(SHOP),)
    assert (plane.progress(SHOP), plane.standing.generation(key(SHOP))) == (None, None)


async def test_problems_begin_and_end_with_their_finder(plane: Plane) -> None:
    """Problems of the source and problems between objects, found after the wave, are both followed."""
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


async def test_failed_wave_resolves_no_problem(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next wave reports all problems again. Until then problems are unknown, so nothing is reported."""
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


async def test_missing_upstream_is_in_the_status_of_a_workload_at_once(plane: Plane) -> None:
    """Conditions describe the present state; only Events are delayed."""
    upstream = Upstream(a.service_key("till"), Port(80), IpAddress("127.0.0.1"), Port(9001))
    sourced_object = workload(BUYER, "10.0.0.2", 2)
    assert isinstance(sourced_object.value, Workload)
    await plane.change(
        replace(sourced_object, value=replace(sourced_object.value, interception=Explicit(None, (upstream,))))
    )
    await plane.told()
    assert plane.codes() == {"MW2033"}


async def test_event_of_a_service_without_endpoints_is_delayed(plane: Plane) -> None:
    """The problem of a Service without Pods is passed on after ten seconds, if the Service still has none."""
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
    assert {problem.code for problem in plane.standing.problems(late.key)} == {"MW2020"}


async def test_a_route_is_reported_when_its_verdict_changes_without_its_edit(tmp_path: Path) -> None:
    """A new port of the parent Service concerns the route; a change without an effect on it does not."""
    plane = Plane(tmp_path, NOW)
    route = g.http_route("split", Rule(backends=(g.to(SHOP),)), parents=(g.parent(SHOP, port=81),))
    route_key = g.key_of(route)
    plane.source.change({route_key: SourcedObject(route_key, route, InCluster("east", "1", 1))})
    await plane.start()
    plane.standing.take()

    def accepted() -> bool:
        decided = plane.decisions.routes.decided(route_key)
        assert decided is not None
        return decided.parents[0].accepted

    assert not accepted()
    plane.source.change(a.objects(a.service(SHOP, a.port(80), a.port(81))))
    await plane.delivery.loop.wave()
    assert route_key in await plane.told()
    assert accepted()
    plane.source.change({route_key: None})
    await plane.delivery.loop.wave()
    await plane.told()
    assert plane.decisions.routes.decided(route_key) is None


async def test_a_gateway_is_reported_when_its_routes_or_proxies_change(tmp_path: Path) -> None:
    """Its progress counts the connected proxies of its workloads, and is shared with other servers."""
    plane = Plane(tmp_path, NOW)
    gateway = g.gateway("edge")
    gateway_key, shop = g.key_of(gateway), workload(SHOP, "10.0.0.1").value
    assert isinstance(shop, Workload)
    serving = replace(shop, interception=Edge("edge"))
    in_cluster = InCluster("east", "1", 3)
    things: dict[ObjectKey, MeshObject] = {
        key(SHOP): serving,
        g.key_of(g.CLASS): g.CLASS,
        gateway_key: gateway,
    }
    plane.source.change({each: SourcedObject(each, thing, in_cluster) for each, thing in things.items()})
    plane.come(SHOP)
    await plane.start()
    plane.standing.take()
    (progress,) = plane.progresses
    assert progress(gateway_key) == Progress(0, 1)
    plane.acknowledge(SHOP)
    assert progress(gateway_key) == Progress(1, 1)
    assert [item for item in plane.reporter.own_progress() if item.key == gateway_key] == [
        ObjectProgress(gateway_key, 3, 1, 1)
    ]
    route = g.http_route("split", Rule(backends=(g.to(SHOP),)), parents=(g.at("edge"),))
    plane.source.change({g.key_of(route): SourcedObject(g.key_of(route), route, in_cluster)})
    await plane.delivery.loop.wave()
    assert gateway_key in await plane.told()
    assert progress(gateway_key) == Progress(0, 1), "the new table is not acknowledged"


async def test_a_gateway_whose_proxy_came_from_another_server_is_programmed_after_a_change(
    tmp_path: Path,
) -> None:
    """The proxy holds what it is served, so it acknowledges the changed resources alone."""
    plane = Plane(tmp_path, NOW)
    gateway = g.gateway("edge")
    shop = workload(SHOP, "10.0.0.1").value
    assert isinstance(shop, Workload)
    things: tuple[MeshObject, ...] = (replace(shop, interception=Edge("edge")), g.CLASS, gateway)
    keys = (key(SHOP), g.key_of(g.CLASS), g.key_of(gateway))
    in_cluster = InCluster("east", "1", 3)
    plane.source.change(
        {each: SourcedObject(each, thing, in_cluster) for each, thing in zip(keys, things, strict=True)}
    )
    plane.come(SHOP)
    await plane.start()
    before = plane.delivery.cache.snapshot(node(SHOP))
    assert before is not None
    stream = DeltaStream()
    stream.on_snapshot(before)
    for type_url in before.types():
        resources = before.resources(type_url)
        stream.on_request(
            DeltaRequest(type_url, subscribe=tuple(resources), initial_versions=resources.versions)
        )
    for response in stream.take_held():
        plane.delivery.observer.held(node(SHOP), response)
    (progress,) = plane.progresses
    assert progress(g.key_of(gateway)) == Progress(1, 1)

    route = g.http_route("split", Rule(backends=(g.to(SHOP),)), parents=(g.at("edge"),))
    plane.source.change({g.key_of(route): SourcedObject(g.key_of(route), route, in_cluster)})
    await plane.delivery.loop.wave()
    assert progress(g.key_of(gateway)) == Progress(0, 1)
    after = plane.delivery.cache.snapshot(node(SHOP))
    assert after is not None
    for type_url, names in after.changed_since(before).items():
        changed = tuple(after.resources(type_url)[name] for name in names)
        response = Response(type_url, Version("v"), Nonce("n"), changed)
        plane.delivery.answers.answered(node(SHOP), response, None)
    assert progress(g.key_of(gateway)) == Progress(1, 1)


async def test_change_is_reported_after_an_internal_error(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look that fails has used up the notification of the change."""
    monkeypatch.setattr(reporters, "SOON", 0.0)
    monkeypatch.setattr(reporters, "AGAIN", 0.0)
    finish, errors = plane.delivery.loop.linting.finish, [LookupError("an error of ours")]

    async def fails_once() -> None:
        if errors:
            raise errors.pop()
        await finish()

    monkeypatch.setattr(plane.delivery.loop.linting, "finish", fails_once)
    plane.writer.changed.clear()
    plane.standing.touch([key(SHOP)])
    plane.reporter.changed()
    (_, following), (_, writing) = plane.reporter.works()
    writing.close()
    task = asyncio.create_task(following)
    async with asyncio.timeout(5):
        await plane.writer.changed.wait()
    task.cancel()
    await asyncio.wait([task])
    assert not errors
