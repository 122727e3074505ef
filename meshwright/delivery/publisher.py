"""Publication of waves: snapshots without quarantined resources go into the cache, then followers run."""

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
"""Number of causes in the log line of a wave; the others are counted."""

_log = structlog.get_logger("delivery.loop")

OnPublished = Callable[[Wave, Step, Mapping[GroupKey, Snapshot]], None]
"""Receiver of a published part: the wave, the step, and the former snapshots by group."""


class WaveFollower(Protocol):
    """Follower of each wave; the methods must be quick and must not raise."""

    def publishing(self, wave: Wave) -> None:
        """Handle a wave that is computed and about to be published."""

    def published(self, wave: Wave, touched: int) -> None:
        """Handle a published part of a wave, which concerns `touched` connected proxies."""

    def over(self, wave: Wave) -> None:
        """Handle the end of a wave, when all parts are published."""


class PendingRecords(Protocol):
    """Buffered records of proxies, such as the journal; the methods must not raise."""

    @property
    def waits(self) -> bool:
        """True if any record is buffered."""

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Write the buffered records of these proxies now."""

    def entering(self) -> Iterator[bool | None]:
        """Write all records; yield `None` after each part, and True at the end."""


class NoPendingRecords:
    """Empty buffer, for a publisher without a journal."""

    waits = False

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Do no work, because the buffer is always empty."""

    def entering(self) -> Iterator[bool | None]:
        """Yield True, because the buffer is always empty."""
        yield True


def ignore_step(wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
    """Ignore a published part: default for a publisher without receivers."""


class Publisher:
    """Publisher of waves: numbers them, applies the quarantine, and puts the result into the cache.

    `notify` and `follower` are notified of each published part in the same turn of the event loop, before any
    stream has sent the new resources. Both must be quick and must not raise. Buffered records (`noted`) of a
    proxy are written before the proxy gets other resources, because an ACK must be matched with the snapshot
    that was served then.
    """

    def __init__(
        self,
        cache: SnapshotCache,
        quarantine: Quarantine,
        meter: WaveMeter,
        notify: OnPublished = ignore_step,
        follower: WaveFollower | None = None,
        noted: PendingRecords | None = None,
    ) -> None:
        self.quarantine = quarantine
        self._cache = cache
        self._meter = meter
        self._notify = notify
        self._follower = follower
        self._noted = noted or NoPendingRecords()
        self._number = 0

    @property
    def published(self) -> PublishedSnapshots:
        """The published snapshots as computed, without the quarantine's changes for single proxies."""
        return self.quarantine.published

    async def publish(self, wave: Wave, step: Step, slices: Slices) -> int | None:
        """Publish a step; return the number of connected proxies concerned, or `None` for an empty step.

        A large step is published in parts (see `delivery.batches`), with turns for the streams between them.
        If a part fails, the parts before it stay published.
        """
        if step:
            # In slices here, because `_settle` writes the same records for each part without a break.
            await self.settle_all(slices)
        wave = self._begin(wave)
        before = self.published
        self._log_failures(step.failed, before.failed)
        touched = 0
        for part in parts(step, before):
            touched += self._publish(wave, part)
            await slices.give_way()
        self._finish(wave)
        if not step:
            return None
        await asyncio.sleep(0)  # streams send the new resources before the log line is written
        _log_published(wave, step, touched)
        return touched

    def attend(self, step: Step) -> None:
        """Publish snapshots for newly connected proxies, and drop those of groups no longer served.

        Followers are not notified, because to a proxy the snapshot is as if the proxy had been connected
        before.
        """
        before = self.published
        self._log_failures(step.failed, before.failed)
        self._settle(step)
        try:
            lessened = self.quarantine.after(step)
            self._cache.publish_changes(lessened.snapshots, lessened.members)
        # The cache has refused the step, so the quarantine must not count it as published.
        except Exception:
            self.quarantine.undone(before)
            raise

    def withhold(self, wave: Wave, step: Step) -> None:
        """Publish a fallback snapshot after a NACK; `step` is the quarantine's decision."""
        wave = self._begin(wave)
        self._settle(step)
        self._serve(wave, step)
        self._finish(wave)

    def lessen(self) -> None:
        """Inform the snapshot cache of streams with a new or an ended fallback snapshot."""
        for stream, (node, less) in self.quarantine.streams.take_changes().items():
            self._cache.lessen(node, stream, less)

    def _begin(self, wave: Wave) -> Wave:
        self._number += 1
        wave = replace(wave, number=self._number)
        if self._follower is not None:
            self._follower.publishing(wave)
        return wave

    def _finish(self, wave: Wave) -> None:
        if self._follower is not None:
            self._follower.over(wave)

    def _publish(self, wave: Wave, part: Step) -> int:
        before = self.published
        self._settle(part)
        try:
            return self._serve(wave, self.quarantine.after(part))
        # The cache has refused the part, so the quarantine must not count it as published.
        except Exception:
            self.quarantine.undone(before)
            raise

    def _serve(self, wave: Wave, step: Step) -> int:
        if not step:
            return 0
        # The former snapshots are read before the cache replaces them.
        known = self._cache.snapshots()
        replaced = {group: old for group in step.snapshots if (old := known.get(group)) is not None}
        touched = self._cache.publish_changes(step.snapshots, step.members)
        self._notify(wave, step, replaced)
        if self._follower is not None:
            self._follower.published(wave, touched)
        return touched

    def settle_with(self, node: NodeKey) -> None:
        """Write the buffered records of a proxy and its group.

        The ACKs of other proxies of the group count too, because they show which versions are good.
        """
        if self._noted.waits:
            self._noted.settle((node,))
            self._settle_groups((self.published.members.get(node),))

    async def settle_all(self, slices: Slices) -> None:
        """Write all buffered records, in slices."""
        await slices.result(self._noted.entering())

    def _settle(self, step: Step) -> None:
        """Write the buffered records of all proxies concerned by a step, also of whole groups."""
        if self._noted.waits:
            self._noted.settle(step.members)
            self._settle_groups({*step.snapshots, *step.members.values()})

    def _settle_groups(self, groups: Iterable[GroupKey | None]) -> None:
        for group in groups:
            if group is not None:
                self._noted.settle(self._cache.members(group))

    def _log_failures(
        self, failed: Mapping[GroupKey, Failure | None], before: Mapping[GroupKey, Failure]
    ) -> None:
        for failure in failed.values():
            if failure is not None and failure != before.get(GroupKey(failure.group)):
                self._meter.group_failed()
                code = failure_problem(failure).code
                _log.error(
                    "group failed", code=code, group=failure.group, error=failure.error, kept=failure.kept
                )


def _log_published(wave: Wave, step: Step, touched: int) -> None:
    _log.info(
        "snapshots published",
        wave=wave.number,
        causes=[str(cause) for cause in wave.causes[:CAUSES_LOGGED]],
        more=len(wave.causes[CAUSES_LOGGED:]) + wave.more,
        groups=len(step.snapshots),
        proxies=len(step.members),
        touched=touched,
    )
