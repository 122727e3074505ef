"""Which wave a response is due to: what each wave changed, group by group."""

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
"""How many waves back a response may be: those of which a slow client has not been sent everything."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupWave:
    """A wave, as a group of proxies saw it: the names it changed by type; None where it may be anything.

    `moment` counts what was published, from 0: a wave may be published in parts, groups at a time.
    """

    moment: int
    wave: Wave
    names: Mapping[TypeUrl, frozenset[ResourceName]] | None

    def concerns(self, content: Content) -> bool:
        """Say whether the wave changed something of what a response holds."""
        if self.names is None:
            return True
        if content.whole and content.type_url in self.names:
            return True
        return content.names_any(self.of(content.type_url))

    def of(self, type_url: TypeUrl) -> frozenset[ResourceName]:
        """Return the names that the wave is known to have changed in a type."""
        names = self.names or {}
        found = names.get(type_url, frozenset())
        # A changed cluster's endpoints are sent with it, whether they are other ones or not (rule O4).
        return found | names.get(CLUSTER, frozenset()) if type_url == ENDPOINT else found


class Triggers:
    """The last waves that changed each group, and each proxy that came to another group."""

    def __init__(self, is_here: Callable[[GroupKey], bool], replaced: Callable[[Resource], None]) -> None:
        """`is_here` says whether a proxy of the group is connected; `replaced` is told of old resources."""
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
        """Take a step; return the touches of those of the proxies `here` that are in another group now."""
        touch = GroupWave(moment, wave, {})
        # Groups to which the same happened before share what is remembered of it.
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

    def of(self, group: GroupKey | None) -> tuple[GroupWave, ...]:
        """Return the last waves that changed a group, oldest first."""
        return () if group is None else self._touches.get(group, ())


def causing(
    touches: tuple[GroupWave, ...], content: Content, opened: int, seen: int, *, is_news: bool
) -> tuple[Wave, ...]:
    """Return the waves that a response is due to, newest first; none if it answers a request.

    `opened` is the newest moment when the stream was opened, `seen` the newest when a response of this type
    was last sent on it. What brings nothing new after all waves have been seen was asked for. A wave in which
    the proxy came to another group may be due to nothing: a client that comes back holds what it is to have.
    """
    if not touches:
        return ()
    key = (opened, seen, is_news)
    if content.cause is not None and content.cause[0] is touches and content.cause[1] == key:
        return content.cause[2]
    found = _causing(touches, content, opened, seen, is_news=is_news)
    content.cause = (touches, key, found)
    return found


def _causing(
    touches: tuple[GroupWave, ...], content: Content, opened: int, seen: int, *, is_news: bool
) -> tuple[Wave, ...]:
    fresh: list[Wave] = []
    before: Wave | None = None
    explained: set[ResourceName] = set()
    for touch in reversed(touches):
        # The stream began with that: it is in the answer to its first requests, and made none of its own.
        if touch.moment <= opened:
            continue
        if touch.moment > seen:
            # A move to another group may have changed anything, and so would explain everything: it is a
            # cause of what the waves after it leave unexplained, and of no more.
            if touch.concerns(content) and (touch.names is not None or not content.is_within(explained)):
                if touch.wave not in fresh:  # one may have changed the group to which the proxy came in it
                    fresh.append(touch.wave)
                explained |= touch.of(content.type_url)
        elif is_news and not fresh and before is None and touch.concerns(content):
            before = touch.wave  # news of a wave that was seen before: some of it waited for its turn (O2)
    if fresh:
        return tuple(fresh)
    return () if before is None else (before,)
