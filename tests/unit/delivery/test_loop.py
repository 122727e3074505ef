"""Tests of the delivery loop: changes become snapshots, failures keep the last configuration."""

import asyncio
import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import structlog

import catalog.relations.groups
from catalog.store.view import MeshSettings
from certs.state.pair_files import PairFiles
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.ack_handling import Answers
from meshwright.delivery.certificates.certificates import ServiceCertificates
from meshwright.delivery.incremental_lint import IncrementalLint
from meshwright.delivery.loop import Loop, MeshState
from meshwright.delivery.mesh_sources import MeshSources, Paces
from meshwright.delivery.model import Model
from meshwright.delivery.presence import ConnectionGracePeriod, Presence
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.self_check import Verification
from meshwright.delivery.snapshots.rendering import GroupInput, Translate
from meshwright.delivery.snapshots.translation import translation
from meshwright.delivery.timing.debounce import Pace
from meshwright.engine.graph import Graph
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.values.picture import Picture
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.sources import Sources
from meshwright.sidecars.contract.driver import Piece
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.tools.own_authority import own_authority
from xds.cache import NodeKey, SnapshotCache
from xds.protocol.resources.resource import CLUSTER, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response

NODE = NodeKey("a.store.shop")
SourceOf = Callable[..., DirectorySource]


def _translate(need: GroupInput) -> Iterable[Piece]:
    serial = need.certificate.serial if need.certificate else "none"
    return (Piece(Resource, (CLUSTER, ResourceName("c"), Version(serial), b"")),)


def _broken(need: GroupInput) -> Iterable[Piece]:
    raise ValueError(f"no {need.policy.identity}")


class Plane:
    """A loop over one source, with the states that the loop reported."""

    def __init__(self, state: Path, source: DirectorySource, now: datetime) -> None:
        self.cache = SnapshotCache()
        self.states: list[MeshState] = []
        self.said: list[list[str]] = []  # the problems of each state, which change with the next one
        self.metrics = Metrics()
        self.source = source
        self.now = now
        authority = own_authority(state, TrustDomain("cluster.local"), now)
        self.keeper = ServiceCertificates(
            authority,
            PairFiles(state),
            lambda issuance_counts: self.metrics.issued("service", "built-in", issuance_counts.issued),
            lambda: 0.0,
        )
        self.heard = asyncio.Event()

    def loop(
        self,
        translate: Translate = _translate,
        settings: MeshSettings | None = None,
        verify: bool = False,
    ) -> Loop:
        """Return a new loop."""

        def on_state(state: MeshState) -> None:
            self.states.append(state)
            self.said.append([problem.code for problem in state.problems])
            self.heard.set()

        pace = Pace(0.001, 0.01)
        given = settings or MeshSettings()
        self.gathering = MeshSources(Sources((self.source,)), Paces(pace, pace), self.metrics)
        self.publishing = Publisher(self.cache, Quarantine(lambda _: None), self.metrics)
        self.answers = Answers(self.publishing, self.gathering.changed, lambda: self.now)
        return Loop(
            self.gathering,
            lambda: Model(translate, given),
            self.keeper,
            self.publishing,
            clock=lambda: self.now,
            meter=self.metrics,
            on_state=on_state,
            presence=Presence(ConnectionGracePeriod(300.0)),
            verification=Verification(self.metrics) if verify or "MESHWRIGHT_VERIFY" in os.environ else None,
        )


@pytest.fixture
def plane(tmp_path: Path, source_of: SourceOf, now: datetime) -> Plane:
    """Return a plane with one workload."""
    return Plane(tmp_path / "state", source_of(("a", "store")), now)


async def test_wave_publishes_snapshots_with_certificates(plane: Plane) -> None:
    """The wave issues the certificate of the workload's identity, and the snapshot uses it."""
    loop = plane.loop()
    await loop.wave()
    (certificate,) = plane.keeper.certificates.values()
    snapshot = plane.cache.snapshot(NODE)
    assert snapshot is not None
    assert snapshot.ordered(CLUSTER)[0].version == certificate.serial
    assert plane.states == [loop.state]
    assert b'meshwright_waves_total{result="published"} 1.0' in plane.metrics.text()


async def test_wave_without_a_change_publishes_nothing(plane: Plane) -> None:
    """The snapshot stays the same object, and the wave is counted as unchanged."""
    loop = plane.loop()
    await loop.wave()
    before = plane.cache.snapshot(NODE)
    await loop.wave()
    assert plane.cache.snapshot(NODE) is before
    assert b'meshwright_waves_total{result="unchanged"} 1.0' in plane.metrics.text()


async def test_group_whose_translation_fails_is_a_problem(plane: Plane) -> None:
    """A failed translation is listed among the state's problems with its cause, and counted."""
    loop = plane.loop(_broken)
    await loop.wave()
    assert plane.cache.snapshot(NODE) is None
    (problem,) = [item for item in loop.state.problems if item.code == "translation-failed"]
    assert problem.expected == (
        "The configuration of this group of proxies could not be computed, so 0 of 1 proxies keep their last "
        "configuration. The cause: ValueError: no shop/store"
    )
    assert b"meshwright_group_failures_total 1.0" in plane.metrics.text()


async def test_failed_wave_keeps_the_last_configuration(plane: Plane, source_of: SourceOf) -> None:
    """A source with an invalid object fails the wave; the view and the snapshots stay as they were.

    After the source is corrected, the next wave starts from scratch and serves new workloads too.
    """
    loop = plane.loop()
    await loop.wave()
    before, view = plane.cache.snapshot(NODE), loop.state.view
    source_of(("a", "store"), ("b", "other"))
    plane.source.load()
    objects = plane.source.objects
    plane.source.objects = lambda: Picture({**objects(), "no key": "no object"})  # type: ignore[method-assign]
    with structlog.testing.capture_logs() as answer:
        await loop.wave()
    assert [item["event"] for item in answer] == [
        "wave failed; the last published configuration stays in force",
        "problem",
    ]
    assert [problem.code for problem in loop.state.problems] == ["wave-failed"]
    assert loop.state.view is view
    assert plane.cache.snapshot(NODE) is before
    plane.source.objects = objects  # type: ignore[method-assign]
    await loop.wave()
    assert plane.cache.snapshot(NodeKey("b.other.shop")) is not None
    assert plane.cache.snapshot(NODE) is before


async def test_proxy_without_virtual_addresses_is_served_despite_a_small_range(plane: Plane) -> None:
    """A range that is too small is a problem, but proxies that need no virtual address are served."""
    loop = plane.loop(settings=MeshSettings(virtual_addresses=IPv4Network("240.0.0.0/32")))
    await loop.wave()
    assert plane.cache.snapshot(NODE) is not None
    (problem,) = loop.state.problems
    assert problem.expected.endswith("choose a larger range")


@pytest.mark.differs
async def test_self_check_logs_and_counts_a_difference(
    plane: Plane, source_of: SourceOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With verification, each wave is compared with a computation from scratch.

    Here the difference comes from an engine that marks no reader of a changed input.
    """
    loop = plane.loop(translation(EnvoyDriver()), verify=True)
    await loop.wave()
    assert b"meshwright_verifications_total 1.0" in plane.metrics.text()
    assert b"meshwright_verification_differences_total 0.0" in plane.metrics.text()
    source_of(("a", "store"))
    manifests = plane.source._path / "mesh.yaml"
    manifests.write_text(manifests.read_text().replace("8080", "8081"))
    plane.source.load()
    monkeypatch.setattr(Graph, "_mark", lambda *_: None)
    with structlog.testing.capture_logs() as answer:
        await loop.wave()
    assert "proxy a.store.shop: Listener inbound-listener" in [item.get("difference") for item in answer]
    assert b"meshwright_verification_differences_total 0.0" not in plane.metrics.text()


async def test_running_loop_follows_added_and_removed_workloads(plane: Plane, source_of: SourceOf) -> None:
    """Each notification of a change leads to a wave, which serves new workloads and drops removed ones."""
    loop = plane.loop()
    task = asyncio.create_task(loop.run())
    plane.gathering.changed()
    await plane.heard.wait()
    assert plane.cache.snapshot(NODE) is not None
    plane.heard.clear()
    source_of(("b", "store"))
    plane.source.load()
    plane.gathering.changed()
    await plane.heard.wait()
    assert plane.cache.snapshot(NodeKey("b.store.shop")) is not None
    assert plane.cache.snapshot(NODE) is None  # an open stream would keep its configuration
    task.cancel()
    await asyncio.wait([task])


async def test_proxy_of_a_removed_workload_has_no_snapshot(plane: Plane, source_of: SourceOf) -> None:
    """Its stream is woken to None and not to an empty snapshot, which would delete its configuration."""
    loop = plane.loop()
    await loop.wave()
    snapshots: list[Snapshot | None] = []
    plane.cache.watch(NODE, lambda: snapshots.append(plane.cache.snapshot(NODE)))
    source_of(("b", "other"))
    plane.source.load()
    await loop.wave()
    assert snapshots == [None]


async def test_wave_does_not_wait_for_the_running_lint(plane: Plane, source_of: SourceOf) -> None:
    """The wave's state has no lint problems; the lint adds its findings to a later state."""
    loop = plane.loop()
    await loop.wave()
    # On a busy machine the wave may take longer than the usual pause before a search.
    published = asyncio.Event()
    loop.linting._rest = published.wait
    task = asyncio.create_task(loop.linting.run())
    await asyncio.sleep(0)
    source_of(("a", "store"), ("b", "store"))
    manifests = plane.source._path / "mesh.yaml"
    manifests.write_text(manifests.read_text().replace("app: store}, ports", "app: nobody}, ports"))
    plane.source.load()
    before = len(plane.states)
    await loop.wave()
    assert plane.said[before] == []
    plane.heard.clear()
    published.set()
    while not loop.state.problems:
        await plane.heard.wait()
        plane.heard.clear()
    assert "MW2020" in [problem.code for problem in loop.state.problems]
    task.cancel()
    await asyncio.wait([task])


async def test_requested_lint_finds_problems_of_the_last_wave_without_delay(
    plane: Plane, source_of: SourceOf
) -> None:
    """`finish` lints the last wave at once, even if another caller of it is cancelled.

    A further call finds nothing new, so it reports no state.
    """
    loop = plane.loop()
    loop.linting.postpone()
    source_of(("a", "store"))
    manifests = plane.source._path / "mesh.yaml"
    manifests.write_text(manifests.read_text().replace("app: store}, ports", "app: nobody}, ports"))
    plane.source.load()
    await loop.wave()
    assert "MW2020" not in [problem.code for problem in loop.state.problems]
    first, second = (asyncio.create_task(loop.linting.finish()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()  # the first caller has gone
    await second
    assert "MW2020" in [problem.code for problem in loop.state.problems]
    answer = len(plane.said)
    await loop.linting.finish()
    assert len(plane.said) == answer


async def test_waves_of_a_burst_are_linted_together(plane: Plane) -> None:
    """One lint covers a burst, after a pause in which proxies can answer; a later wave has its own lint."""
    loop = plane.loop()
    await loop.wave()
    gates, queue = asyncio.Semaphore(0), asyncio.Queue[object]()
    linting = IncrementalLint(lambda: loop.model, queue.put_nowait, gates.acquire, clock=lambda: plane.now)
    task = asyncio.create_task(linting.run())
    await asyncio.sleep(0)
    for _ in range(3):
        await linting.after_wave()
        await asyncio.sleep(0)
    assert queue.empty()
    gates.release()
    await queue.get()
    await linting.after_wave()
    gates.release()
    await queue.get()
    gates.release()
    await asyncio.sleep(0)
    assert queue.empty()
    task.cancel()
    await asyncio.wait([task])


async def test_rejected_resource_is_reported_and_withheld_until_it_changes(
    plane: Plane, source_of: SourceOf
) -> None:
    """A rejection is a problem of its Service, and the proxy is served the version it accepted before.

    Another version of the resource is served again, and the problem disappears.
    """

    def translate(need: GroupInput) -> Iterable[Piece]:
        ports = ",".join(str(port.port) for port in need.policy.inbound)
        return (Piece(Resource, (CLUSTER, ResourceName("c"), Version(ports), b"")),)

    loop = plane.loop(translate, verify=True)
    await loop.wave()
    good = plane.cache.snapshot(NODE)
    assert good is not None
    plane.answers.answered(NODE, _response(good), None)
    await _retarget(plane, loop, 8081)
    bad = plane.cache.snapshot(NODE)
    assert bad is not None
    plane.answers.answered(NODE, _response(bad), Rejection(13, "no"))
    served = plane.cache.snapshot(NODE)
    assert served == good != bad
    await loop.wave()
    (problem,) = [item for item in loop.state.problems if item.code == "resource-rejected"]
    assert (str(problem.key), problem.field) == ("Service shop/store", "cluster c")
    assert plane.publishing.quarantine.findings.counts() == {CLUSTER: 1}
    await _retarget(plane, loop, 8082)
    assert plane.cache.snapshot(NODE) != good
    assert [item for item in loop.state.problems if item.code == "resource-rejected"] == []
    assert b"meshwright_verification_differences_total 0.0" in plane.metrics.text()


def _response(snapshot: Snapshot) -> Response:
    return Response(CLUSTER, snapshot.version(CLUSTER), Nonce("1"), snapshot.ordered(CLUSTER))


async def _retarget(plane: Plane, loop: Loop, port: int) -> None:
    manifests = plane.source._path / "mesh.yaml"
    manifests.write_text(re.sub(r"targetPort: \d+", f"targetPort: {port}", manifests.read_text()))
    plane.source.load()
    await loop.wave()


async def test_workload_whose_group_cannot_be_computed_is_a_problem(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy keeps its last configuration, and the problem names the workload and the cause."""

    def fails(*_: object) -> None:
        raise ValueError("who is it?")

    monkeypatch.setattr(catalog.relations.groups, "group_of", fails)
    loop = plane.loop()
    await loop.wave()
    (problem,) = [item for item in loop.state.problems if item.code == "workload-not-placed"]
    assert (str(problem.key), str(problem.origin)) == ("Workload shop/w-a", "mesh.yaml:6 (document 2)")
    assert problem.expected == (
        "The index `workloads by group` could not be computed for this workload, so its proxy keeps its last "
        "configuration. The cause: ValueError: who is it?"
    )


async def test_time_alone_starts_a_lint(plane: Plane) -> None:
    """Certificates expire without a wave; each look at the time has a search for its time."""
    loop = plane.loop()
    await loop.wave()
    ticks, queue, times = asyncio.Semaphore(0), asyncio.Queue[object](), list[datetime]()

    def clock() -> datetime:
        times.append(plane.now)
        return plane.now

    async def at_once() -> None:
        return None

    linting = IncrementalLint(lambda: loop.model, queue.put_nowait, at_once, clock=clock, again=ticks.acquire)
    task = asyncio.create_task(linting.run())
    await queue.get()
    plane.now += timedelta(days=1)
    ticks.release()
    await queue.get()
    assert [times[-1] - time for time in times] == [timedelta(days=1), timedelta(0)]
    task.cancel()
    await asyncio.wait([task])
