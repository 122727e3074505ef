"""Publishing: a change of everything wakes so many streams a turn, and what fails half-way stays true."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery import publisher as publishing
from meshwright.delivery.batches import GROUPS, parts
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.timing.time_slices import SLICE_SECONDS, Slices
from meshwright.delivery.wave import Wave
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import CLUSTER, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.server.streams.wake_queue import WakeQueue

ALL = range(2 * GROUPS + 10)
WAVE = Wave(0, (), 0, 0.0, 0.0, datetime(2026, 1, 1, tzinfo=UTC))


def _step(version: str, *, first: bool = False) -> Step:
    """Serve every group another snapshot; each has one proxy."""
    resource = Resource(CLUSTER, ResourceName("c"), Version(version), b"")
    members: dict[NodeKey, GroupKey | None] = (
        {NodeKey(f"{n}"): GroupKey(f"{n}") for n in ALL} if first else {}
    )
    return Step({GroupKey(f"{n}"): Snapshot.of((resource,)) for n in ALL}, members)


def _always_late() -> Slices:
    """Return slices of a clock by which each part takes a whole one."""
    moments: Iterator[float] = iter(range(10_000))
    return Slices(lambda: next(moments) * 2 * SLICE_SECONDS)


class Plane:
    """A cache whose proxies all have streams, and how many of them were woken in each turn of the loop."""

    def __init__(self, told: publishing.OnPublished = publishing.nobody) -> None:
        self.cache = SnapshotCache()
        self.publishing = Publisher(self.cache, Quarantine(lambda _: None), Metrics(), told)
        self.turns = [0]
        for number in ALL:
            self.cache.watch(NodeKey(f"{number}"), self._woken)

    def _woken(self) -> None:
        self.turns[-1] += 1

    async def publish(self, step: Step) -> int | None:
        """Publish a step beside somebody who runs once in each turn."""
        others = asyncio.create_task(self._others())
        try:
            return await self.publishing.publish(WAVE, step, _always_late())
        finally:
            others.cancel()

    async def _others(self) -> None:
        while True:
            self.turns.append(0)
            await asyncio.sleep(0)


async def test_a_change_of_everything_wakes_so_many_streams_a_turn() -> None:
    """Others run between the parts, and every stream is woken once."""
    plane = Plane()
    await plane.publish(_step("1", first=True))
    plane.turns = [0]
    assert await plane.publish(_step("2")) == len(ALL)
    assert [each for each in plane.turns if each] == [GROUPS, GROUPS, 10]
    assert plane.publishing.published.snapshots == _step("2").snapshots


async def test_streams_have_their_turn_before_anything_is_said() -> None:
    """Who is concerned waits for no line of the log."""
    cache, said = SnapshotCache(), list[int]()
    node, group = NodeKey("n"), GroupKey("g")
    resource = Resource(CLUSTER, ResourceName("c"), Version("1"), b"")
    step = Step({group: Snapshot.of((resource,))}, {node: group})
    with capture_logs() as lines:
        waking = WakeQueue()
        cache.watch(node, lambda: waking.wake(lambda: said.append(len(lines))))
        await Publisher(cache, Quarantine(lambda _: None), Metrics()).publish(WAVE, step, Slices())
    assert said == [0]
    assert [each["event"] for each in lines] == ["snapshots published"]


async def test_publishing_all_at_once_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without parts the test above would see every stream woken in one turn."""
    monkeypatch.setattr(publishing, "parts", lambda step, before: parts(step, before, len(ALL)))
    plane = Plane()
    await plane.publish(_step("1", first=True))
    plane.turns = [0]
    await plane.publish(_step("2"))
    assert [each for each in plane.turns if each] == [len(ALL)]


async def test_what_was_published_before_something_failed_is_known() -> None:
    """The next step is made from what proxies have, not from what they had."""
    left = [4]  # three parts of the first step, one of the second

    def told(wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        del wave, step, replaced
        left[0] -= 1
        if left[0] < 0:
            raise ValueError("no more")

    plane = Plane(told)
    await plane.publish(_step("1", first=True))
    with pytest.raises(ValueError, match="no more"):
        await plane.publish(_step("2"))
    found = {plane.publishing.published.snapshots[GroupKey(f"{n}")].version(CLUSTER) for n in ALL}
    assert len(found) == 2
    assert all(
        plane.publishing.published.snapshots[GroupKey(f"{n}")] == _step("2").snapshots[GroupKey(f"{n}")]
        for n in range(GROUPS)
    )


async def test_a_step_of_nothing_publishes_nothing() -> None:
    """Nobody is told, and it is said."""
    heard: list[Wave] = []
    plane = Plane(lambda wave, step, replaced: heard.append(wave))
    assert await plane.publish(Step()) is None
    assert heard == []
