"""The last step of a wave: into the cache, less what proxies have rejected, and told."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import structlog

from admin.metrics import Metrics
from controller.rejection.withholding import Withholding
from controller.snapshots.published import Failure, Step
from controller.waves.wave import Wave
from xds.cache import GroupKey, SnapshotCache

CAUSES_LOGGED: Final = 4

_log = structlog.get_logger("controller.waves.mesh")

OnPublished = Callable[[Wave, Step], None]


def nobody(wave: Wave, step: Step) -> None:
    """Take no notice."""


class Publishing:
    """Numbers waves and puts what they come to into the cache.

    `told` hears of each wave that published something, in the same step of the event loop, right after: no
    stream has written anything of it yet. It must be quick and must not raise.
    """

    def __init__(
        self, cache: SnapshotCache, withholding: Withholding, metrics: Metrics, told: OnPublished
    ) -> None:
        self._cache = cache
        self._withholding = withholding
        self._metrics = metrics
        self._told = told
        self._number = 0

    def publish(self, wave: Wave, step: Step, failed: Mapping[GroupKey, Failure]) -> int | None:
        """Publish what is new, if anything is; return how many connected proxies it concerns.

        `failed` are the groups that had failed before.
        """
        self._number += 1
        for failure in step.failed.values():
            if failure is not None and failure != failed.get(GroupKey(failure.group)):
                self._metrics.group_failed()
                _log.error("group failed", group=failure.group, error=failure.error, kept=failure.kept)
        if not step:
            return None
        step = self._withholding.after(step)
        touched = self._cache.publish_changes(step.snapshots, step.members)
        self._told(replace(wave, number=self._number), step)
        _log.info(
            "snapshots published",
            wave=self._number,
            causes=[str(each) for each in wave.causes[:CAUSES_LOGGED]],
            more=len(wave.causes[CAUSES_LOGGED:]) + wave.more,
            groups=len(step.snapshots),
            proxies=len(step.members),
            touched=touched,
        )
        return touched

    def withhold(self, wave: Wave, step: Step) -> None:
        """Publish what stands in for something rejected: `step` is what Withholding made of an answer."""
        self._number += 1
        self._cache.publish_changes(step.snapshots, step.members)
        self._told(replace(wave, number=self._number), step)
