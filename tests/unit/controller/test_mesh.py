"""The loop: changes become snapshots, unchanged ones do not, failures leave the mesh as it was."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import structlog

from admin.metrics import Metrics
from catalog.view import MeshSettings
from certs.authority import CertificateAuthority
from controller.debounce import Pace
from controller.issuing import CertificateKeeper
from controller.mesh import MeshLoop, MeshState
from controller.wave import Need
from mesh.names import TrustDomain
from providers.directory import DirectorySource
from xds.cache import NodeKey, SnapshotCache
from xds.resource import CLUSTER, Resource, ResourceName, Version

NODE = NodeKey("a.store.shop")
Sources = Callable[..., DirectorySource]
Translate = Callable[[Need], Iterable[Resource]]


def _translate(need: Need) -> Iterable[Resource]:
    serial = need.certificate.serial if need.certificate else "none"
    return (Resource(CLUSTER, ResourceName("c"), Version(serial), b""),)


def _broken(need: Need) -> Iterable[Resource]:
    raise ValueError(f"no {need.policy.identity}")


class Plane:
    """A loop over one source, with what it has told of its states."""

    def __init__(self, state: Path, source: DirectorySource, now: datetime) -> None:
        self.cache = SnapshotCache()
        self.states: list[MeshState] = []
        self.metrics = Metrics()
        self.source = source
        self.now = now
        authority = CertificateAuthority.open(state, TrustDomain("cluster.local"), now)
        self.keeper = CertificateKeeper(
            authority, state, lambda count: self.metrics.issued("service", count), lambda: 0.0
        )
        self.heard = asyncio.Event()

    def loop(self, translate: Translate = _translate, settings: MeshSettings | None = None) -> MeshLoop:
        """Make a loop."""

        def on_state(state: MeshState) -> None:
            self.states.append(state)
            self.heard.set()

        return MeshLoop(
            self.source,
            (self.source,),
            self.keeper,
            self.cache,
            translate,
            settings or MeshSettings(),
            pace=Pace(0.001, 0.01),
            clock=lambda: self.now,
            metrics=self.metrics,
            on_state=on_state,
        )


@pytest.fixture
def plane(tmp_path: Path, source_of: Sources, now: datetime) -> Plane:
    """Return a plane with one workload."""
    return Plane(tmp_path / "state", source_of(("a", "store")), now)


async def test_a_wave_publishes_snapshots_with_certificates(plane: Plane) -> None:
    """The certificate of the workload's identity is issued on the way."""
    loop = plane.loop()
    await loop.wave()
    (certificate,) = plane.keeper.certificates.values()
    snapshot = plane.cache.snapshot(NODE)
    assert snapshot is not None
    assert snapshot.ordered(CLUSTER)[0].version == certificate.serial
    assert plane.states == [loop.state]
    assert b'meshwright_waves_total{result="published"} 1.0' in plane.metrics.text()


async def test_a_wave_without_a_change_publishes_nothing(plane: Plane) -> None:
    """The snapshot is the same object, and the wave is counted as unchanged."""
    loop = plane.loop()
    await loop.wave()
    before = plane.cache.snapshot(NODE)
    await loop.wave()
    assert plane.cache.snapshot(NODE) is before
    assert b'meshwright_waves_total{result="unchanged"} 1.0' in plane.metrics.text()


async def test_a_group_that_fails_is_a_problem(plane: Plane) -> None:
    """It is said in the same place as what is wrong with manifests."""
    loop = plane.loop(_broken)
    await loop.wave()
    assert plane.cache.snapshot(NODE) is None
    (problem,) = [each for each in loop.state.problems if each.code == "translation-failed"]
    assert problem.expected == "ValueError: no shop/store (0 of 1 proxies keep what they had)"
    assert b"meshwright_group_failures_total 1.0" in plane.metrics.text()


async def test_a_wave_that_fails_leaves_the_mesh_as_it_was(plane: Plane, source_of: Sources) -> None:
    """Here there are no virtual addresses left: the view itself cannot be built."""
    loop = plane.loop()
    await loop.wave()
    before = plane.cache.snapshot(NODE)
    none_left = MeshSettings(virtual_addresses=IPv4Network("240.0.0.0/32"))
    failing = plane.loop(settings=none_left)
    failing.state = loop.state
    source_of(("a", "store"), ("b", "other"))
    extra = plane.source._path / "extra.yaml"
    extra.write_text((plane.source._path / "mesh.yaml").read_text().replace("name: store,", "name: more,"))
    plane.source.load()
    with structlog.testing.capture_logs() as said:
        await failing.wave()
    assert [each["event"] for each in said] == ["wave failed; the mesh stays as it was", "problem"]
    assert [each.code for each in failing.state.problems if each.code == "wave-failed"] == ["wave-failed"]
    assert failing.state.view is loop.state.view
    assert plane.cache.snapshot(NODE) is before


async def test_the_loop_runs_when_something_changed(plane: Plane, source_of: Sources) -> None:
    """A workload that appears is served by the running loop."""
    loop = plane.loop()
    task = asyncio.create_task(loop.run())
    loop.changed()
    await plane.heard.wait()
    assert plane.cache.snapshot(NODE) is not None
    plane.heard.clear()
    source_of(("b", "store"))
    plane.source.load()
    loop.changed()
    await plane.heard.wait()
    assert plane.cache.snapshot(NodeKey("b.store.shop")) is not None
    assert plane.cache.snapshot(NODE) is None  # a stream of it would keep what it has
    task.cancel()
    await asyncio.wait([task])


async def test_a_proxy_whose_workload_vanished_is_not_woken(plane: Plane, source_of: Sources) -> None:
    """Its stream keeps what it has: it is told nothing, least of all an empty configuration."""
    loop = plane.loop()
    await loop.wave()
    woken: list[str] = []
    plane.cache.watch(NODE, lambda: woken.append("a"))
    source_of(("b", "other"))
    plane.source.load()
    await loop.wave()
    assert woken == []
