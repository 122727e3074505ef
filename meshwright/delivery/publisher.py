"""The last step of a wave: into the cache, less what proxies have rejected, and told."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

import structlog

from meshwright.delivery.batches import parts
from meshwright.delivery.meters import WaveMeter
from meshwright.delivery.problems import failure_problem
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Failure, PublishedSnapshots, Step
from meshwright.delivery.timing.time_slices import Slices
from meshwright.delivery.wave import Wave
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.snapshot import Snapshot

CAUSES_LOGGED: Final = 4

_log = structlog.get_logger("delivery.loop")

OnPublished = Callable[[Wave, Step, Mapping[GroupKey, Snapshot]], None]


class WaveFollower(Protocol):
    """Whoever follows each wave to those whom it concerns; must be quick and must not raise."""

    def publishing(self, wave: Wave) -> None:
        """Take note that a wave is computed, and is about to be published."""

    def published(self, wave: Wave, touched: int) -> None:
        """Take note that a part of it is, and how many connected proxies that concerns."""

    def over(self, wave: Wave) -> None:
        """Take note that all of it is."""


class PendingRecords(Protocol):
    """What was noted of proxies and is still to be entered in the books, which must not raise."""

    @property
    def waits(self) -> bool:
        """Whether there is anything."""

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Enter all of some proxies now."""

    def entering(self) -> Iterator[bool | None]:
        """Enter all that there is; yield None after each part of it, and in the end True."""


class NoPendingRecords:
    """Nothing is noted: whatever happens is entered at once."""

    waits = False

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Enter nothing."""

    def entering(self) -> Iterator[bool | None]:
        """Enter nothing."""
        yield True


def nobody(wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
    """Take no notice."""


class Publisher:
    """Numbers waves and puts what they come to into the cache, less what proxies have rejected.

    `told` hears of each part of a wave that was published, and of the snapshots that it replaced, in the
    same turn of the event loop, right after: no stream has written anything of it yet. It must be quick and
    must not raise. So does a `follower`, if there is one. What is `noted` of a proxy is entered before it is
    served something else: it is understood by what was served then.
    """

    def __init__(
        self,
        cache: SnapshotCache,
        quarantine: Quarantine,
        meter: WaveMeter,
        told: OnPublished = nobody,
        follower: WaveFollower | None = None,
        noted: PendingRecords | None = None,
    ) -> None:
        self.quarantine = quarantine
        self._cache = cache
        self._meter = meter
        self._told = told
        self._follower = follower
        self._noted = noted or NoPendingRecords()
        self._number = 0

    @property
    def published(self) -> PublishedSnapshots:
        """What is computed and was published so far, whatever some proxies have in its place."""
        return self.quarantine.published

    async def publish(self, wave: Wave, step: Step, slices: Slices) -> int | None:
        """Publish what is new, if anything is; return how many connected proxies it concerns.

        A step that is large is published in parts (see delivery.batches), and streams go on between
        them. What was published before something failed stays so.
        """
        if step:
            await self.settle_all(slices)
        wave = self._begun(wave)
        before = self.published
        self._say_failed(step.failed, before.failed)
        touched = 0
        for part in parts(step, before):
            touched += self._publish(wave, part)
            await slices.give_way()
        self._over(wave)
        if not step:
            return None
        await asyncio.sleep(0)  # it goes out to those who are concerned before anything is said of it
        _say_published(wave, step, touched)
        return touched

    def attend(self, step: Step) -> None:
        """Publish for proxies that came what they are to have, and take back what nobody wants any more.

        Nobody is told: to a proxy it is as if it had been there when it came.
        """
        before = self.published
        self._say_failed(step.failed, before.failed)
        self._settle(step)
        try:
            lessened = self.quarantine.after(step)
            self._cache.publish_changes(lessened.snapshots, lessened.members)
        except Exception:
            self.quarantine.undone(before)
            raise

    def withhold(self, wave: Wave, step: Step) -> None:
        """Publish what stands in for something rejected: `step` is what the quarantine made of an answer."""
        wave = self._begun(wave)
        self._settle(step)
        self._serve(wave, step)
        self._over(wave)

    def lessen(self) -> None:
        """Serve single streams less than others of their proxy, or the same again, as the quarantine says."""
        for stream, (node, less) in self.quarantine.streams.take_changes().items():
            self._cache.lessen(node, stream, less)

    def _begun(self, wave: Wave) -> Wave:
        self._number += 1
        wave = replace(wave, number=self._number)
        if self._follower is not None:
            self._follower.publishing(wave)
        return wave

    def _over(self, wave: Wave) -> None:
        if self._follower is not None:
            self._follower.over(wave)

    def _publish(self, wave: Wave, part: Step) -> int:
        before = self.published
        self._settle(part)
        try:
            return self._serve(wave, self.quarantine.after(part))
        except Exception:
            self.quarantine.undone(before)
            raise

    def _serve(self, wave: Wave, step: Step) -> int:
        if not step:
            return 0
        known = self._cache.snapshots()
        replaced = {group: old for group in step.snapshots if (old := known.get(group)) is not None}
        touched = self._cache.publish_changes(step.snapshots, step.members)
        self._told(wave, step, replaced)
        if self._follower is not None:
            self._follower.published(wave, touched)
        return touched

    def settle_with(self, node: NodeKey) -> None:
        """Have all entered of a proxy and of its group: what the others accepted counts for it."""
        if self._noted.waits:
            self._noted.settle((node,))
            self._settle_groups((self.published.members.get(node),))

    async def settle_all(self, slices: Slices) -> None:
        """Have all entered that is noted, in slices."""
        await slices.result(self._noted.entering())

    def _settle(self, step: Step) -> None:
        """Have all entered of the proxies and groups that a step concerns."""
        if self._noted.waits:
            self._noted.settle(step.members)
            self._settle_groups({*step.snapshots, *step.members.values()})

    def _settle_groups(self, groups: Iterable[GroupKey | None]) -> None:
        for group in groups:
            if group is not None:
                self._noted.settle(self._cache.members(group))

    def _say_failed(
        self, failed: Mapping[GroupKey, Failure | None], before: Mapping[GroupKey, Failure]
    ) -> None:
        for failure in failed.values():
            if failure is not None and failure != before.get(GroupKey(failure.group)):
                self._meter.group_failed()
                code = failure_problem(failure).code
                _log.error(
                    "group failed", code=code, group=failure.group, error=failure.error, kept=failure.kept
                )


def _say_published(wave: Wave, step: Step, touched: int) -> None:
    _log.info(
        "snapshots published",
        wave=wave.number,
        causes=[str(each) for each in wave.causes[:CAUSES_LOGGED]],
        more=len(wave.causes[CAUSES_LOGGED:]) + wave.more,
        groups=len(step.snapshots),
        proxies=len(step.members),
        touched=touched,
    )
