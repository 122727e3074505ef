"""The last pushes of each proxy. Written at every response: it keeps references, and computes when asked."""

import sys
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from meshwright.delivery.history.causes import TOUCHES, GroupWave, Triggers, causing
from meshwright.delivery.history.old_resources import ReplacedResources, left
from meshwright.delivery.history.push import Answer, Push, Trigger
from meshwright.delivery.history.record import (
    ProxyRecords,
    PushFollower,
    Record,
    SentResponse,
    TypeRecord,
    answer,
    overtaken,
    shown,
    since,
)
from meshwright.delivery.history.versions import (
    NOTHING_HELD,
    ClientPosition,
    Content,
    Contents,
    Delivery,
    Transition,
    VersionChanges,
)
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.wave import Wave
from meshwright.mesh.objects import ObjectKey
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import TypeUrl
from xds.protocol.resources.resources import NO_RESOURCES, Resources
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Rejection, Response
from xds.stream_status import Variant

PUSHES: Final = 32
"""Responses remembered per proxy."""

TYPES: Final = 64
"""Types remembered per proxy, over all its streams: a proxy may ask for any."""

PROXIES: Final = 10_000
"""Proxies whose pushes are remembered; beyond that those of the one that was connected first are not."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from the event that a response was due to until it was sent, and acknowledged, if just now."""

    sent: float | None = None
    acknowledged: float | None = None


NO_DELAYS: Final = Delays()


class PushHistory:
    """Remembers what was sent to whom, what it was due to, and what was said to it.

    All times are seconds of one monotonic clock. Streams of one proxy are told apart by the order in which
    they open alone: while two of them overlap, what the proxy holds is what either was sent. `answers` counts
    ACKs and NACKs, also of proxies that are not remembered.
    """

    def __init__(
        self,
        cache: SnapshotCache,
        find: Callable[[NodeKey], ProxyRecords | None],
        follower: PushFollower | None = None,
    ) -> None:
        """`find` returns where the pushes of a proxy are kept; None for one that is not known."""
        self._cache = cache
        self._contents = Contents()
        self._replaced = ReplacedResources()
        self._triggers = Triggers(self._is_here, self._replaced.keep)
        self._find = find
        self._follower = follower
        self._order: dict[NodeKey, None] = {}  # whose pushes are remembered, by the newest stream
        self._waiting: dict[SentResponse, None] = {}
        self._newest = -1
        self.answers = 0
        self.replaced = self._replaced.find

    def published(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        """Note what a wave, or a part of it, published, and which snapshots it replaced."""
        self._newest += 1
        here = {node: found for node in step.members if (found := self._of(node)) is not None}
        served = {node: each.group for node, each in here.items() if each.streams and each.group is not None}
        for resource in left(self._cache, replaced, served):
            self._replaced.keep(resource)
        for node, touch in self._triggers.published(self._newest, wave, step, replaced, here).items():
            proxy = here[node]
            proxy.moved = (*proxy.moved, touch)[-TOUCHES:]
            proxy.group = self._cache.group(node)

    def opened(self, node: NodeKey, variant: Variant, now: float) -> None:
        """Note a stream. An incremental client keeps what it holds over streams, any other begins anew."""
        if (keeper := self._find(node)) is None:
            return
        known = keeper.pushes
        self._order.pop(node, None)
        if known is None:
            known = keeper.pushes = Record(variant, self._newest, now)
            if len(self._order) >= PROXIES:
                self._forget(next(iter(self._order)))
        else:
            known.again, known.opened, known.since = True, self._newest, now
            known.moved = ()
            for each in known.types.values():
                each.fresh = True
                if variant is Variant.SOTW or variant is not known.variant:
                    each.held = NOTHING_HELD
            known.variant = variant
        known.streams += 1
        self._order[node] = None

    def closed(self, node: NodeKey, now: float) -> None:
        """Note the end of a stream, its proxy's oldest: nobody will answer what was sent before the next."""
        if (proxy := self._of(node)) is None:
            return
        proxy.streams -= 1
        for each in proxy.pushes:
            if each.state is Answer.PENDING and (proxy.streams == 0 or each.sent < proxy.since):
                each.state = Answer.ENDED
                self._finished(node, each, now)
            if proxy.streams == 0:
                each.response = None

    def sent(self, node: NodeKey, response: Response, size: int, now: float) -> Delays:
        """Note a response that goes out; return how long after its event."""
        if (proxy := self._of(node)) is None:
            return NO_DELAYS
        content = self._contents.of(proxy.variant, response)
        kind = proxy.types.get(response.type_url)
        if kind is None:
            if len(proxy.types) >= TYPES:
                del proxy.types[next(iter(proxy.types))]
            kind = proxy.types[response.type_url] = TypeRecord(NOTHING_HELD)
        delivery = self._taken(node, proxy, kind, content, response, size)
        if len(proxy.pushes) >= PUSHES:
            self._waiting.pop(proxy.pushes.pop(0), None)
        if proxy.variant is Variant.SOTW:
            for each in overtaken(proxy.pushes, response.type_url):
                self._finished(node, each, now)
        push = SentResponse(delivery, sys.intern(response.nonce), now, response)
        proxy.pushes.append(push)
        self._waiting[push] = None
        if self._follower is not None:
            self._follower.sent(node, push)
        return NO_DELAYS if delivery.began is None else Delays(since(delivery, now))

    def answered(self, node: NodeKey, response: Response, rejection: Rejection | None, now: float) -> Delays:
        """Note an ACK or NACK; return how long after its event an ACK came."""
        self.answers += 1
        if (proxy := self._of(node)) is None:
            return NO_DELAYS
        for push in reversed(proxy.pushes):
            if push.response is response:
                was_ended = push.state is not Answer.PENDING
                delay = answer(push, rejection, now)
                self._finished(node, push, now, again=was_ended)
                return NO_DELAYS if delay is None else Delays(None, delay)
        return NO_DELAYS

    def changed(self, node: NodeKey, response: Response) -> frozenset[ObjectKey]:
        """Return the objects that led to a response, of those that are named; none where it was asked for."""
        proxy = self._of(node)
        pushes = () if proxy is None else reversed(proxy.pushes)
        due = next((each.delivery.due for each in pushes if each.response is response), ())
        causes = (cause for wave in due for cause in wave.causes) if isinstance(due, tuple) else ()
        return frozenset(each.object for each in causes)

    def unanswered_age(self, now: float) -> float:
        """Return for how many seconds the oldest response without an answer has waited, 0 if none has."""
        return max(0.0, now - min((each.sent for each in self._waiting), default=now))

    def pushes(self, node: NodeKey, now: float, date: datetime) -> tuple[Push, ...]:
        """Return a proxy's last pushes, newest first; `now` and `date` are the same moment on both clocks."""
        proxy = self._of(node)
        return () if proxy is None else tuple(shown(each, now, date) for each in reversed(proxy.pushes))

    def _finished(self, node: NodeKey, push: SentResponse, now: float, *, again: bool = False) -> None:
        self._waiting.pop(push, None)
        if self._follower is not None and not again:
            self._follower.finished(node, push, now)

    def _touches(self, node: NodeKey, proxy: Record) -> tuple[GroupWave, ...]:
        proxy.group = self._cache.group(node)
        touches = self._triggers.of(proxy.group)
        if not proxy.moved:
            return touches
        return tuple(sorted((*touches, *proxy.moved), key=lambda each: each.moment))

    def _taken(
        self, node: NodeKey, proxy: Record, kind: TypeRecord, content: Content, response: Response, size: int
    ) -> Delivery:
        """Take a response to what a proxy holds; return how, which is one value for all who stood there."""
        touches = self._touches(node, proxy)
        # Most were here before the oldest of the waves, and were sent what the one before the newest brought:
        # when they came, and in which part of that one it was, makes no difference.
        opened = max(proxy.opened, touches[0].moment - 1) if touches else proxy.opened
        seen = next((each.moment for each in reversed(touches) if each.moment <= kind.seen), -1)
        kind.seen = self._newest
        stood = ClientPosition(touches, opened, seen, response.version, size)
        known = kind.held.taken
        if (
            (known is not None and known.content is content and known.stood == stood)
            and not kind.fresh
            and (after := known.after()) is not None
        ):
            kind.held = after
            return known.delivery
        before, again = kind.held, proxy.again and kind.fresh
        kind.fresh = False
        move, kind.held = before.after(content, lambda: self._served(node, response.type_url).versions)
        waves = causing(touches, content, opened, seen, is_news=move.is_news)
        delivery = self._delivery(
            content, move, waves or (Trigger.RECONNECTED if again else Trigger.SUBSCRIBED), response, size
        )
        if waves and before.versions:
            before.taken = Transition(content, stood, weakref.ref(kind.held), delivery)
        return delivery

    def _delivery(
        self,
        content: Content,
        move: VersionChanges,
        due: tuple[Wave, ...] | Trigger,
        response: Response,
        size: int,
    ) -> Delivery:
        """Return what is remembered of a step: the very value of whoever was sent the same before."""
        if (
            (last := content.delivery) is not None
            and (last.move is move and last.due == due)
            and (last.version == response.version and last.size == size)
        ):
            return last
        began = min(wave.since for wave in due) if isinstance(due, tuple) else None
        content.delivery = found = Delivery(content, move, due, response.version, size, began)
        return found

    def _served(self, node: NodeKey, type_url: TypeUrl) -> Resources:
        snapshot = self._cache.snapshot(node)
        return NO_RESOURCES if snapshot is None else snapshot.resources(type_url)

    def _is_here(self, group: GroupKey) -> bool:
        return any(
            proxy.streams for node in self._cache.members(group) if (proxy := self._of(node)) is not None
        )

    def _of(self, node: NodeKey) -> Record | None:
        keeper = self._find(node)
        return None if keeper is None else keeper.pushes

    def _forget(self, node: NodeKey) -> None:
        """Forget what is remembered of a proxy; the proxy itself is not forgotten here."""
        del self._order[node]
        if (keeper := self._find(node)) is not None and keeper.pushes is not None:
            for push in keeper.pushes.pushes:
                self._waiting.pop(push, None)
            keeper.pushes = None
