"""Made for who is here: nothing before the first stream, soon after it, nothing a while after the last."""

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
    """Make services that may all be called by the first, each with a workload."""
    found: list[object] = [a.route_group("all", a.match("any", "/.*"))]
    for number in range(services):
        name = f"s{number}"
        found += [a.service(name), a.workload(name, f"10.{number // 250}.1.{number % 250 + 1}")]
        found.append(a.target(f"to-{number}", "s0", name, a.http("all")))
    return found


@pytest.fixture
def plane(tmp_path: Path, now: datetime) -> New:
    """Return a maker of planes over a mesh."""
    return lambda *objects: Plane(tmp_path / "state", now, *objects)


async def test_with_nobody_here_nothing_is_made(plane: New) -> None:
    """No resource, no certificate, no group; but everything is followed, and the roots are there."""
    made = plane(*_mesh(5))
    await made.loop.wave()
    assert (made.work().encoded, made.issued, made.kept) == (0, 0, [])
    assert made.cache.snapshots() == {}
    assert len(made.loop.state.proxies) == 5
    assert made.model.certified


async def test_a_service_more_with_nobody_here_costs_the_same_in_every_mesh(plane: New) -> None:
    """What is computed is a small number, and what is made none."""
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


async def test_a_stream_has_its_group_made_and_no_other(plane: New) -> None:
    """With the certificate of its identity alone; no wave is made for it, and none is its cause."""
    made = plane(*_mesh(5))
    await made.loop.wave()
    await made.come("s1")
    assert made.kept == [node("s1")]
    assert made.cache.snapshot(node("s1")) is not None
    assert [str(each) for each in made.certificates.certificates] == ["default/s1"]
    assert made.told == []
    await made.change((a.target("more", "s2", "s1", a.http("all")),))
    (wave,) = made.told
    assert [str(each.kind) for each in wave.causes] == ["TrafficTarget"]


async def test_who_comes_to_a_group_that_is_there_waits_for_nothing(plane: New) -> None:
    """The second proxy of a service finds its snapshot; nothing is computed for it."""
    made = plane(*_mesh(3), a.workload("other", "10.8.0.1", app="s1", account="s1"))
    await made.loop.wave()
    await made.come("s1")
    before = made.work()
    other = NodeKey(next(each for each in made.kept if each != node("s1")))
    made.cache.watch(other, lambda: None)
    assert made.cache.snapshot(other) is made.cache.snapshot(node("s1")) is not None
    await made.loop.attend()
    assert (made.work() - before).encoded == 0


async def test_what_is_kept_lingers_and_is_forgotten(plane: New) -> None:
    """Values and certificates are counted back to what they were; what is stored of a certificate stays."""
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


async def test_one_that_is_back_while_it_lingers_finds_everything(plane: New) -> None:
    """Nothing is computed or made again."""
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


async def test_what_lingers_is_kept_current(plane: New) -> None:
    """A change meanwhile is in what it finds."""
    made = plane(*_mesh(3))
    await made.loop.wave()
    (stream,) = await made.come("s0")
    await made.leave(stream, seconds=1.0)
    before = made.cache.snapshot(node("s0"))
    await made.change((a.workload("s2", "10.7.7.7"),))
    assert made.cache.snapshot(node("s0")) is not before


async def test_a_storm_is_made_in_parts_and_published_as_it_is_made(
    plane: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first proxies have theirs before the last ones' are begun; a wave goes between two parts."""
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


async def test_those_that_come_meanwhile_are_served_with_the_others(plane: New) -> None:
    """Whoever comes while others are made does not have to wait for another look."""
    made = plane(*_mesh(ATTENDED + 2))
    await made.loop.wave()
    for number in range(ATTENDED + 1):
        made.open(f"s{number}")
    arriving = asyncio.create_task(made.loop.attend())
    await asyncio.sleep(0)
    made.open(f"s{ATTENDED + 1}")
    await arriving
    assert len(made.kept) == ATTENDED + 2


async def test_a_proxy_that_moves_to_another_group_is_served_what_that_has(plane: New) -> None:
    """Its old group is kept no more, as nobody of it is here."""
    moved = a.workload("s1", "10.0.1.2", account="s2")
    made = plane(*_mesh(3))
    await made.loop.wave()
    await made.come("s1")
    (before,) = made.cache.snapshots()
    await made.change((moved,))
    (after,) = made.cache.snapshots()
    assert before != after
    assert made.kept == [node("s1")]
    assert [str(each) for each in made.certificates.certificates] == ["default/s2"]


async def test_a_stream_that_nothing_can_be_made_for_waits_for_its_workload(plane: New) -> None:
    """The wave that brings that serves it."""
    made = plane(*_mesh(2))
    await made.loop.wave()
    await made.come("new")
    assert made.kept == []
    await made.change((a.service("new"), a.workload("new", "10.9.0.1")))
    assert made.kept == [node("new")]
    assert made.cache.snapshot(node("new")) is not None


async def test_who_has_another_name_than_the_workload_has_nothing_made(plane: New) -> None:
    """The UUID alone makes no proxy of it."""
    made = plane(*_mesh(2))
    await made.loop.wave()
    made.cache.watch(NodeKey(node("s1").replace(".s1.", ".s0.")), lambda: None)
    await made.loop.attend()
    assert (made.kept, made.work().encoded) == ([], 0)


async def test_a_part_that_fails_leaves_the_others_and_the_next_wave_begins_anew(
    plane: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is here is known to it."""
    made = plane(*_mesh(3))
    await made.loop.wave()
    await made.come("s0")
    kept = made.cache.snapshot(node("s0"))

    def fails(*_: object, **__: object) -> None:
        raise ValueError("the disk is gone")

    monkeypatch.setattr(made.certificates, "update", fails)
    await made.come("s1")
    assert [each.code for each in made.loop.state.problems] == ["wave-failed"]
    monkeypatch.undo()
    await made.come("s2")
    await made.gathering.due()
    await made.loop.wave()
    assert made.kept == [node("s0"), node("s1"), node("s2")]
    assert made.cache.snapshot(node("s0")) == kept


async def test_what_is_asked_for_of_an_absent_proxy_is_made_and_not_kept(plane: New) -> None:
    """Without secrets: no certificate is issued for it."""
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
    plain = {each: shown.resources(each) for each in shown.types()}
    assert plain == {each: served.resources(each) for each in shown.types()}
    assert serving.previewed(node("nobody")) is None


async def test_who_comes_while_there_is_no_model_waits_for_the_next_wave(plane: New) -> None:
    """And nobody looks again until then: the event loop would be held for ever."""
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


async def test_a_renewed_certificate_is_served_by_the_wave_that_renewed_it(plane: New) -> None:
    """Nothing else needs to happen for it; once a day's half is over it is another one."""
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
