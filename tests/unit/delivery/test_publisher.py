"""Tests of the publisher: streams woken in each turn, failures half-way, and empty steps."""

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
    """Return a step with another snapshot for every group; each group has one proxy."""
    resource = Resource(CLUSTER, ResourceName("c"), Version(version), b"")
    members: dict[NodeKey, GroupKey | None] = (
        {NodeKey(f"{n}"): GroupKey(f"{n}") for n in ALL} if first else {}
    )
    return Step({GroupKey(f"{n}"): Snapshot.of((resource,)) for n in ALL}, members)


def _always_late() -> Slices:
    """Return time slices on a clock by which each part takes longer than a slice."""
    moments: Iterator[float] = iter(range(10_000))
    return Slices(lambda: next(moments) * 2 * SLICE_SECONDS)


class Plane:
    """A cache with a stream of every proxy, and how many were woken in each turn of the event loop."""

    def __init__(self, told: publishing.OnPublished = publishing.ignore_step) -> None:
        self.cache = SnapshotCache()
        self.publishing = Publisher(self.cache, Quarantine(lambda _: None), Metrics(), told)
        self.turns = [0]
        for number in ALL:
            self.cache.watch(NodeKey(f"{number}"), self._woken)

    def _woken(self) -> None:
        self.turns[-1] += 1

    async def publish(self, step: Step) -> int | None:
        """Publish a step beside a task that runs once in each turn of the event loop."""
        others = asyncio.create_task(self._others())
        try:
            return await self.publishing.publish(WAVE, step, _always_late())
        finally:
            others.cancel()

    async def _others(self) -> None:
        while True:
            self.turns.append(0)
            await asyncio.sleep(0)


async def test_large_step_wakes_a_limited_number_of_streams_per_turn() -> None:
    """Other tasks run between the parts, and every stream is woken once."""
    plane = Plane()
    await plane.publish(_step("1", first=True))
    plane.turns = [0]
    assert await plane.publish(_step("2")) == len(ALL)
    assert [turn for turn in plane.turns if turn] == [GROUPS, GROUPS, 10]
    assert plane.publishing.published.snapshots == _step("2").snapshots


async def test_streams_are_woken_before_the_log_line_is_written() -> None:
    """The log must not delay the proxies' configuration."""
    cache, answer = SnapshotCache(), list[int]()
    node, group = NodeKey("n"), GroupKey("g")
    resource = Resource(CLUSTER, ResourceName("c"), Version("1"), b"")
    step = Step({group: Snapshot.of((resource,))}, {node: group})
    with capture_logs() as lines:
        waking = WakeQueue()
        cache.watch(node, lambda: waking.wake(lambda: answer.append(len(lines))))
        await Publisher(cache, Quarantine(lambda _: None), Metrics()).publish(WAVE, step, Slices())
    assert answer == [0]
    assert [line["event"] for line in lines] == ["snapshots published"]


async def test_publication_in_one_part_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without parts, every stream is woken in one turn."""
    monkeypatch.setattr(publishing, "parts", lambda step, before: parts(step, before, len(ALL)))
    plane = Plane()
    await plane.publish(_step("1", first=True))
    plane.turns = [0]
    await plane.publish(_step("2"))
    assert [turn for turn in plane.turns if turn] == [len(ALL)]


async def test_step_that_fails_half_way_records_its_published_parts() -> None:
    """The next step must start from the snapshots that proxies have, not from their older ones."""
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
    versions = {plane.publishing.published.snapshots[GroupKey(f"{n}")].version(CLUSTER) for n in ALL}
    assert len(versions) == 2
    assert all(
        plane.publishing.published.snapshots[GroupKey(f"{n}")] == _step("2").snapshots[GroupKey(f"{n}")]
        for n in range(GROUPS)
    )


async def test_empty_step_publishes_nothing_and_notifies_no_follower() -> None:
    """`publish` returns None, which differs from the number of woken streams of other steps."""
    heard: list[Wave] = []
    plane = Plane(lambda wave, step, replaced: heard.append(wave))
    assert await plane.publish(Step()) is None
    assert heard == []
