"""Tests of a wave's cost: for each kind of change it is the same in a mesh four times as large."""

import functools
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.meshes import generator as meshes
from catalog.store.settings import EndpointAdmission
from catalog.store.view import MeshSettings
from certs.state.pair_files import PairFiles
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.observing.gauges import GaugeBuilder
from meshwright.delivery.assembly import Delivery, delivery
from meshwright.delivery.certificates.certificates import ServiceCertificates
from meshwright.delivery.mesh_sources import Paces
from meshwright.delivery.model import Model
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.translation import translation
from meshwright.delivery.snapshots.wanted_groups import ConnectedGroups
from meshwright.delivery.timing import time_slices
from meshwright.delivery.timing.debounce import Pace
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.objects import MeshObject, ObjectKey
from meshwright.providers.sources import Sources
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from meshwright.sidecars.lint import InstalledDrivers
from tests.meshes.sources import MemorySource
from tests.tools.own_authority import own_authority
from tests.unit.catalog.lint.test_growth import CHANGES, LARGE, SMALL, Calls
from xds.cache import NodeKey

HERE = (16, 10, 19)
"""The services whose sidecars are here: two that call the one that moves, one that calls a split's apex."""

PUT_TOGETHER = CHANGES.keys() - {"a target is narrowed", "a namespace is annotated"}
"""What changes something that sidecars have: in permissive mode that is all services."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a wave: computed functions, reused values, woken proxies, and calls of any function."""

    computed: int
    reused: int
    touched: int
    calls: int


class Plane:
    """A mesh in memory with a few connected sidecars."""

    def __init__(self, state: Path, now: datetime, services: int, permissive: bool) -> None:
        self._services, self._permissive = services, permissive
        self._source = MemorySource("memory", meshes.mesh(services, permissive=permissive).objects)
        self._gauging, self._now = GaugeBuilder(), now
        self.woken: list[NodeKey] = []
        self.delivery = _delivery(state, now, self._source)
        for number in HERE:
            for replica in range(2):
                node = NodeKey(str(meshes.workload(number, replica).proxy_name))
                self.delivery.cache.watch(node, functools.partial(self.woken.append, node))

    async def work(self, change: Callable[..., Mapping[ObjectKey, MeshObject | None]], count: int) -> Work:
        """Apply a change, and return the work of its wave and gauges."""
        edits = change(self._services, count, self._permissive)
        self._source.change(
            {key: None if value is None else meshes.sourced(key, value) for key, value in edits.items()}
        )
        model = self.delivery.loop.model
        assert model is not None
        before, calls = model.work(), Calls()
        self.woken.clear()
        with calls:
            self.delivery.gathering.changed()
            await self.delivery.loop.wave()
            await self._measure()
        done = model.work() - before
        return Work(done.computed, done.reused, len(self.woken), calls.count)

    async def _measure(self) -> None:
        delivered = self.delivery
        await self._gauging.count(delivered.loop.state.published.snapshots)
        counts = delivered.registry.counts()
        self._gauging.gauges(delivered.loop.state, {}, counts, (), 0, 0.0, self._now)


def _delivery(state: Path, now: datetime, source: MemorySource) -> Delivery:
    metrics, installed = (
        Metrics(),
        InstalledDrivers({"document": DocumentDriver(), "envoy": EnvoyDriver()}, {}),
    )
    authority = own_authority(state, TrustDomain("cluster.local"), now)
    pace = Pace(0.001, 0.01)
    return delivery(
        sources=Sources((source,)),
        paces=Paces(pace, pace),
        readiness=EndpointReadiness((), EndpointAdmission.OFF),
        certificates=ServiceCertificates(authority, PairFiles(state), lambda _: None, lambda: 0.0),
        new_model=lambda: Model(
            translation(EnvoyDriver()), MeshSettings(), lambda: installed, ConnectedGroups
        ),
        new_quarantine=lambda acknowledged, _: Quarantine(empty, acknowledged=acknowledged),
        lingering=60.0,
        meter=metrics,
        clock=lambda: now,
    )


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, bool], Awaitable[Plane]]:
    """Return a function that returns planes by size and mode; each plane is created once."""
    made: dict[tuple[int, bool], Plane] = {}
    now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")

    async def get(services: int, permissive: bool) -> Plane:
        if (result := made.get((services, permissive))) is None:
            folder = tmp_path_factory.mktemp("state") / "state"
            result = made[services, permissive] = Plane(folder, now, services, permissive)
            await result.delivery.loop.wave()
            await result.delivery.loop.attend()
            await result.work(CHANGES["an endpoint moves"], 98)
        return result

    return get


@pytest.fixture(autouse=True)
def _one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wave gives way to nobody: on a busy machine its turns would add calls, depending on the time."""
    monkeypatch.setattr(time_slices, "SLICE_SECONDS", math.inf)


@pytest.mark.parametrize(
    ("name", "permissive"),
    [(name, mode) for name in CHANGES for mode in (False, True) if not mode or name not in PUT_TOGETHER],
)
async def test_wave_costs_the_same_in_a_larger_mesh(
    plane: Callable[[int, bool], Awaitable[Plane]], name: str, permissive: bool
) -> None:
    """With four times as many services, a change computes as many values and wakes as many proxies.

    The calls of functions, those for gauges included, grow by at most 5 %.
    """
    small, large = await plane(SMALL, permissive), await plane(LARGE, permissive)
    for count in range(4):
        few, many = await small.work(CHANGES[name], count), await large.work(CHANGES[name], count)
        assert (many.computed, many.touched) == (few.computed, few.touched)
        assert many.reused <= few.reused
        assert many.calls <= 1.05 * few.calls


async def test_only_connected_proxies_are_concerned(plane: Callable[[int, bool], Awaitable[Plane]]) -> None:
    """The counts of woken proxies compared above are not zero: here 4, 2 and all 6 connected sidecars."""
    small = await plane(SMALL, False)
    assert (await small.work(CHANGES["an endpoint moves"], 97)).touched == 4
    assert (await small.work(CHANGES["a weight changes"], 97)).touched == 2
    assert (await small.work(CHANGES["a setting changes"], 96)).touched == 6
