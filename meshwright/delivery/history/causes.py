"""Attribution of xDS responses to waves, from the resource names changed by each wave in each group."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.delivery.history.old_resources import changed
from meshwright.delivery.history.versions import Content
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.wave import Wave
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, Resource, ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot

TOUCHES: Final = 4
"""Number of past waves kept per group, so a response to a slow client can still be attributed."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupWave:
    """Effect of a wave on one group: the changed names by type, or `None` if anything may have changed.

    `moment` numbers publications from 0. A wave published in several parts has several moments.
    """

    moment: int
    wave: Wave
    names: Mapping[TypeUrl, frozenset[ResourceName]] | None

    def concerns(self, content: Content) -> bool:
        """Return whether the wave changed a resource sent or removed by a response with this content."""
        if self.names is None:
            return True
        if content.whole and content.type_url in self.names:
            return True
        return content.names_any(self.names_of_type(content.type_url))

    def names_of_type(self, type_url: TypeUrl) -> frozenset[ResourceName]:
        """Return the names of the resources of one type changed by the wave, as far as known."""
        names = self.names or {}
        resource_names = names.get(type_url, frozenset())
        # The endpoints of a changed cluster are sent with the cluster, changed or not (rule O4).
        return resource_names | names.get(CLUSTER, frozenset()) if type_url == ENDPOINT else resource_names


class Triggers:
    """The last waves with changes of each group, and the moves of proxies between groups."""

    def __init__(self, is_here: Callable[[GroupKey], bool], replaced: Callable[[Resource], None]) -> None:
        """Take `is_here` (has this group a connected proxy?) and the receiver of `replaced` resources."""
        self._is_here = is_here
        self._replaced = replaced
        self._touches: dict[GroupKey, tuple[GroupWave, ...]] = {}

    def published(
        self,
        moment: int,
        wave: Wave,
        step: Step,
        replaced: Mapping[GroupKey, Snapshot],
        here: Iterable[NodeKey],
    ) -> Mapping[NodeKey, GroupWave]:
        """Record a step.

        Return the effect of the wave on the proxies in `here` with a new group.
        """
        touch = GroupWave(moment, wave, {})
        # Groups with the same past share one tuple, which saves memory in a mesh of many equal groups.
        shared: dict[tuple[GroupWave, ...], tuple[GroupWave, ...]] = {}
        for group, snapshot in step.snapshots.items():
            if snapshot is None:
                self._touches.pop(group, None)
                continue
            old = replaced.get(group)
            if old is None or old is snapshot or not self._is_here(group):
                continue
            if (names := snapshot.changed_since(old)) != touch.names:
                touch = GroupWave(moment, wave, names)
            if names:
                newest = (*self._touches.get(group, ()), touch)[-TOUCHES:]
                self._touches[group] = shared.setdefault(newest, newest)
                for resource in changed(old, names):
                    self._replaced(resource)
        moved = [node for node in here if step.members.get(node) is not None] if step.members else []
        return dict.fromkeys(moved, GroupWave(moment, wave, None))

    def waves(self, group: GroupKey | None) -> tuple[GroupWave, ...]:
        """Return the last waves that changed a group, oldest first."""
        return () if group is None else self._touches.get(group, ())


def causing(
    touches: tuple[GroupWave, ...], content: Content, opened: int, seen: int, *, is_news: bool
) -> tuple[Wave, ...]:
    """Return the waves that caused a response, newest first; empty if the response answers a request.

    `opened` is the newest moment before the stream was opened, and `seen` the newest moment before the last
    response of this type on the stream. A response without news, after all waves have been seen, was
    requested by the client. A move to another group need not cause a response: a reconnecting client may
    already hold the resources of the new group.
    """
    if not touches:
        return ()
    # Proxies of a group get the same response one after the other, so the last result is reused.
    key = (opened, seen, is_news)
    if content.cause is not None and content.cause[0] is touches and content.cause[1] == key:
        return content.cause[2]
    waves = _causing(touches, content, opened, seen, is_news=is_news)
    content.cause = (touches, key, waves)
    return waves


def _causing(
    touches: tuple[GroupWave, ...], content: Content, opened: int, seen: int, *, is_news: bool
) -> tuple[Wave, ...]:
    fresh: list[Wave] = []
    before: Wave | None = None
    explained: set[ResourceName] = set()
    for touch in reversed(touches):
        # Published before the stream was opened: part of the answer to the first requests, not a cause.
        if touch.moment <= opened:
            continue
        if touch.moment > seen:
            # A move to another group may have changed anything, and would explain every response. So the move
            # counts as a cause only of names that later waves leave unexplained.
            if touch.concerns(content) and (touch.names is not None or not content.is_within(explained)):
                if touch.wave not in fresh:  # a wave can both move a proxy and change its new group
                    fresh.append(touch.wave)
                explained |= touch.names_of_type(content.type_url)
        elif is_news and not fresh and before is None and touch.concerns(content):
            before = touch.wave  # news of an older wave: these resources had to wait for their turn (rule O2)
    if fresh:
        return tuple(fresh)
    return () if before is None else (before,)
