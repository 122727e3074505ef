"""Tests of snapshots on demand: computed for connected proxies, dropped after a grace period."""

import asyncio
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from meshwright.delivery.loop import ATTENDED
from tests.meshes import values as a
from tests.unit.delivery.loop_in_memory import LINGERING, Plane, node
from xds.cache import NodeKey

New = Callable[..., Plane]


def _mesh(services: int) -> list[object]:
    """Return services that the first service may call, each with a workload."""
    result: list[object] = [a.route_group("all", a.match("any", "/.*"))]
    for number in range(services):
        name = f"s{number}"
        result += [a.service(name), a.workload(name, f"10.{number // 250}.1.{number % 250 + 1}")]
        result.append(a.target(f"to-{number}", "s0", name, a.http("all")))
    return result


@pytest.fixture
def plane(tmp_path: Path, now: datetime) -> New:
    """Return a function that returns a plane over a mesh."""
    return lambda *objects: Plane(tmp_path / "state", now, *objects)


async def test_mesh_without_connected_proxies_encodes_and_issues_nothing(plane: New) -> None:
    """Without connected proxies there is no resource, certificate or group, because they would be unused.

    The mesh is followed all the same, and the roots are ready, so that a first proxy is served soon.
    """
    made = plane(*_mesh(5))
    await made.loop.wave()
    assert (made.work().encoded, made.issued, made.kept) == (0, 0, [])
    assert made.cache.snapshots() == {}
    assert len(made.loop.state.proxies) == 5
    assert made.model.certified


async def test_added_service_without_connected_proxies_costs_the_same_in_any_mesh(plane: New) -> None:
    """A new service needs the same few computations among 10 and 40 services, and no encoding."""
    counted = []
    for size in (10, 40):
        made = plane(*_mesh(size))
        await made.loop.wave()
        before = made.work()
        await made.change((a.service("new"), a.workload("new", "10.9.0.1")))
        work = made.work() - before
        counted.append((work.computed, work.encoded))
    assert counted[0] == counted[1]
    computed, encoded = counted[0]
    assert (computed < 40, encoded) == (True, 0)


async def test_first_stream_of_a_proxy_serves_only_its_group(plane: New) -> None:
    """A stream leads to its group's snapshot and its identity's certificate, but to no wave.

    The next wave therefore does not list the stream as a cause.
    """
    made = plane(*_mesh(5))
    await made.loop.wave()
    await made.come("s1")
    assert made.kept == [node("s1")]
    assert made.cache.snapshot(node("s1")) is not None
    assert [str(certificate) for certificate in made.certificates.certificates] == ["default/s1"]
    assert made.told == []
    await made.change((a.target("more", "s2", "s1", a.http("all")),))
    (wave,) = made.told
    assert [str(cause.kind) for cause in wave.causes] == ["TrafficTarget"]


async def test_second_proxy_of_a_served_group_finds_its_snapshot(plane: New) -> None:
    """The second proxy of a group gets the snapshot that exists; no resource is encoded for it."""
    made = plane(*_mesh(3), a.workload("other", "10.8.0.1", app="s1", account="s1"))
    await made.loop.wave()
    await made.come("s1")
    before = made.work()
    other = NodeKey(next(item for item in made.kept if item != node("s1")))
    made.cache.watch(other, lambda: None)
    assert made.cache.snapshot(other) is made.cache.snapshot(node("s1")) is not None
    await made.loop.attend()
    assert (made.work() - before).encoded == 0


async def test_snapshot_is_dropped_at_the_end_of_the_grace_period(plane: New) -> None:
    """When the grace period ends, the proxy's snapshot, certificate and computed values are dropped.

    The stored certificate stays, so that a proxy that connects again needs no new one.
    """
    made = plane(*_mesh(5))
    await made.loop.wave()
    await made.come()
    nobody = made.model.view.graph.size()
    (stream,) = await made.come("s0")
    here = made.model.view.graph.size()
    assert here > nobody
    await made.leave(stream, seconds=LINGERING - 1)
    assert (made.kept, made.model.view.graph.size()) == ([node("s0")], here)
    made.seconds += 1
    await made.loop.attend()
    assert (made.kept, dict(made.certificates.certificates)) == ([], {})
    assert made.cache.snapshots() == {}
    assert made.model.view.graph.size() == nobody
    issued = made.issued
    await made.come("s0")
    assert made.issued == issued, "it is the one that was stored"


async def test_proxy_that_returns_within_the_grace_period_finds_its_snapshot(plane: New) -> None:
    """Nothing is computed or encoded again for a proxy that returns within its grace period."""
    made = plane(*_mesh(5))
    await made.loop.wave()
    (stream,) = await made.come("s0")
    snapshot, before = made.cache.snapshot(node("s0")), made.work()
    await made.leave(stream, seconds=LINGERING / 2)
    await made.come("s0")
    await made.leave(seconds=LINGERING)
    assert made.cache.snapshot(node("s0")) is snapshot
    work = made.work() - before
    assert (work.computed, work.encoded) == (0, 0)


async def test_snapshot_follows_changes_within_the_grace_period(plane: New) -> None:
    """A disconnected proxy's snapshot is kept current, because the proxy may return."""
    made = plane(*_mesh(3))
    await made.loop.wave()
    (stream,) = await made.come("s0")
    await made.leave(stream, seconds=1.0)
    before = made.cache.snapshot(node("s0"))
    await made.change((a.workload("s2", "10.7.7.7"),))
    assert made.cache.snapshot(node("s0")) is not before


async def test_burst_of_arrivals_is_published_in_parts(plane: New, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first part of a burst is published before the next work begins, here another part or a wave.

    The first proxies therefore do not wait for the last ones.
    """
    size = 3 * ATTENDED
    made = plane(*_mesh(size))
    await made.loop.wave()
    served: list[int] = []
    steps = type(made.model.serving).steps

    def counting(*arguments: object) -> object:
        served.append(len(made.kept))
        return steps(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(type(made.model.serving), "steps", counting)
    for number in range(size):
        made.open(f"s{number}")
    made.source.change(a.objects(a.service("new")))
    arriving = asyncio.create_task(made.loop.attend())
    await asyncio.sleep(0)
    await made.loop.wave()
    await arriving
    assert len(made.kept) == size
    assert served[0] == 0
    assert served == sorted(served)
    assert max(after - before for before, after in itertools.pairwise(served)) <= size - ATTENDED
    assert ATTENDED in served, "the first part is there when something else is begun"


async def test_proxy_that_connects_during_a_burst_is_served_with_it(plane: New) -> None:
    """A proxy that connects while the loop serves others is served in the same round."""
    made = plane(*_mesh(ATTENDED + 2))
    await made.loop.wave()
    for number in range(ATTENDED + 1):
        made.open(f"s{number}")
    arriving = asyncio.create_task(made.loop.attend())
    await asyncio.sleep(0)
    made.open(f"s{ATTENDED + 1}")
    await arriving
    assert len(made.kept) == ATTENDED + 2


async def test_proxy_in_a_new_group_is_served_and_its_old_group_dropped(plane: New) -> None:
    """A workload with another ServiceAccount gets the snapshot and the certificate of its new group.

    The old group is dropped, because none of its proxies is connected.
    """
    moved = a.workload("s1", "10.0.1.2", account="s2")
    made = plane(*_mesh(3))
    await made.loop.wave()
    await made.come("s1")
    (before,) = made.cache.snapshots()
    await made.change((moved,))
    (after,) = made.cache.snapshots()
    assert before != after
    assert made.kept == [node("s1")]
    assert [str(certificate) for certificate in made.certificates.certificates] == ["default/s2"]


async def test_stream_without_a_workload_is_served_once_the_workload_exists(plane: New) -> None:
    """A connected proxy without a workload has no snapshot; the wave that adds the workload serves it."""
    made = plane(*_mesh(2))
    await made.loop.wave()
    await made.come("new")
    assert made.kept == []
    await made.change((a.service("new"), a.workload("new", "10.9.0.1")))
    assert made.kept == [node("new")]
    assert made.cache.snapshot(node("new")) is not None


async def test_proxy_id_with_another_service_account_gets_no_snapshot(plane: New) -> None:
    """A known UUID alone is not enough: the ServiceAccount in the proxy ID must be the workload's."""
    made = plane(*_mesh(2))
    await made.loop.wave()
    made.cache.watch(NodeKey(node("s1").replace(".s1.", ".s0.")), lambda: None)
    await made.loop.attend()
    assert (made.kept, made.work().encoded) == ([], 0)


async def test_failed_round_keeps_served_snapshots_and_the_next_wave_serves_all(
    plane: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round that fails is reported and keeps the snapshots of the proxies served before.

    Here the certificates cannot be written. The next wave serves every connected proxy, because presence does
    not depend on the model.
    """
    made = plane(*_mesh(3))
    await made.loop.wave()
    await made.come("s0")
    kept = made.cache.snapshot(node("s0"))

    def fails(*_: object, **__: object) -> None:
        raise ValueError("the disk is gone")

    monkeypatch.setattr(made.certificates, "update", fails)
    await made.come("s1")
    assert [problem.code for problem in made.loop.state.problems] == ["wave-failed"]
    monkeypatch.undo()
    await made.come("s2")
    await made.gathering.due()
    await made.loop.wave()
    assert made.kept == [node("s0"), node("s1"), node("s2")]
    assert made.cache.snapshot(node("s0")) == kept


async def test_preview_for_a_disconnected_proxy_is_computed_and_not_kept(plane: New) -> None:
    """A preview equals the later snapshot without its secrets, and no certificate is issued for it.

    Its values are dropped afterwards. Served and unknown proxies have no preview.
    """
    made = plane(*_mesh(4))
    await made.loop.wave()
    await made.come()
    nobody, serving = made.model.view.graph.size(), made.model.serving
    shown = serving.previewed(node("s0"))
    assert shown is not None
    assert made.issued == 0
    await made.loop.attend()
    assert made.model.view.graph.size() == nobody
    await made.come("s0")
    assert serving.previewed(node("s0")) is None, "it is served"
    served = made.cache.snapshot(node("s0"))
    assert served is not None
    plain = {type_url: shown.resources(type_url) for type_url in shown.types()}
    assert plain == {type_url: served.resources(type_url) for type_url in shown.types()}
    assert serving.previewed(node("nobody")) is None


async def test_proxy_that_connects_without_a_model_waits_for_the_next_wave(plane: New) -> None:
    """Until the next wave no further round is due, because it would block the event loop for ever."""
    made = plane(*_mesh(2))
    await made.loop.wave()
    made.loop.model = None
    made.seconds += 1
    await made.come("s0")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await made.presence.due()
    await made.gathering.due()
    await made.loop.wave()
    assert made.kept == [node("s0")]


async def test_renewed_certificate_is_served_by_the_wave_that_renewed_it(plane: New) -> None:
    """A wave after half of a certificate's day renews and publishes it without any other change."""
    made = plane(*_mesh(2))
    await made.loop.wave()
    await made.come("s0")
    before = made.cache.snapshot(node("s0"))
    issued = made.issued
    made.now += timedelta(hours=14)
    await made.loop.wave()
    assert made.issued == issued + 1
    assert made.cache.snapshot(node("s0")) is not before
    assert made.model.serving.is_current
