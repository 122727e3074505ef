"""History of pushes per proxy: which response, caused by which wave, answered how and when.

The history answers two questions: "why did this proxy get this response?" (`pushes`, shown on the proxy's
page) and "which objects led to the response that was just rejected?" (`changed`, read by the quarantine).
Every response is recorded, so recording must be cheap: only references are kept, and pages compute the rest
on demand.

All proxies of a group usually take the same step from the same versions. `versions` therefore shares one
value among them: the first proxy pays for the comparison, and the others reuse the result. `causes`
attributes a response to waves, `record` is the state of one proxy, and `open_waves` follows whole waves.

Read next: `record`, then `causes`. Callers use the journal (`delivery.proxies.journal`), which delays the
recording until no proxy has an outstanding response.
"""

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
"""Number of responses remembered per proxy."""

TYPES: Final = 64
"""Number of types remembered per proxy over all its streams, because a client may request any type URL."""

PROXIES: Final = 10_000
"""Number of proxies with remembered pushes.

Beyond it, the proxy whose newest stream is oldest is forgotten.
"""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from the first event behind a response to its sending and to its ACK; `None` if not known."""

    sent: float | None = None
    acknowledged: float | None = None


NO_DELAYS: Final = Delays()


class PushHistory:
    """Record of responses, their causes and their answers.

    All times are seconds of one monotonic clock; use on the event loop. Streams of one proxy are
    distinguished only by the order in which they open. While two streams of a proxy overlap, the versions of
    both are merged. `answers` counts ACKs and NACKs, also of proxies that are not remembered.
    """

    def __init__(
        self,
        cache: SnapshotCache,
        find: Callable[[NodeKey], ProxyRecords | None],
        follower: PushFollower | None = None,
    ) -> None:
        """Take the cache, and `find`, which returns the record holder of a proxy (`None` if unknown)."""
        self._cache = cache
        self._contents = Contents()
        self._replaced = ReplacedResources()
        self._triggers = Triggers(self._is_here, self._replaced.keep)
        self._find = find
        self._follower = follower
        self._order: dict[
            NodeKey, None
        ] = {}  # proxies with remembered pushes, by the age of the newest stream
        self._waiting: dict[SentResponse, None] = {}
        self._newest = -1
        self.answers = 0
        self.replaced = self._replaced.find

    def published(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        """Record the publication of a wave, or of a part of one, with the snapshots replaced."""
        self._newest += 1
        here = {node: record for node in step.members if (record := self._record(node)) is not None}
        served = {node: item.group for node, item in here.items() if item.streams and item.group is not None}
        for resource in left(self._cache, replaced, served):
            self._replaced.keep(resource)
        for node, touch in self._triggers.published(self._newest, wave, step, replaced, here).items():
            proxy = here[node]
            proxy.moved = (*proxy.moved, touch)[-TOUCHES:]
            proxy.group = self._cache.group(node)

    def opened(self, node: NodeKey, variant: Variant, now: float) -> None:
        """Record a new stream.

        The incremental variant keeps the versions that the client holds across streams, because the client
        sends them with its first request. A state-of-the-world stream begins without any.
        """
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
            for type_record in known.types.values():
                type_record.fresh = True
                if variant is Variant.SOTW or variant is not known.variant:
                    type_record.client_versions = NOTHING_HELD
            known.variant = variant
        known.streams += 1
        self._order[node] = None

    def closed(self, node: NodeKey, now: float) -> None:
        """Record the end of a proxy's oldest stream; its unanswered responses will not be answered."""
        if (proxy := self._record(node)) is None:
            return
        proxy.streams -= 1
        for push in proxy.pushes:
            if push.state is Answer.PENDING and (proxy.streams == 0 or push.sent < proxy.since):
                push.state = Answer.ENDED
                self._finished(node, push, now)
            # The response is kept only to recognise its answer.
            if proxy.streams == 0:
                push.response = None

    def sent(self, node: NodeKey, response: Response, size: int, now: float) -> Delays:
        """Record a response of `size` bytes; return the delay since the first event behind the response."""
        if (proxy := self._record(node)) is None:
            return NO_DELAYS
        content = self._contents.content(proxy.variant, response)
        kind = proxy.types.get(response.type_url)
        if kind is None:
            if len(proxy.types) >= TYPES:
                del proxy.types[next(iter(proxy.types))]
            kind = proxy.types[response.type_url] = TypeRecord(NOTHING_HELD)
        delivery = self._step(node, proxy, kind, content, response, size)
        if len(proxy.pushes) >= PUSHES:
            self._waiting.pop(proxy.pushes.pop(0), None)
        # In state of the world, an answer to the newest response of a type also covers older responses of the
        # type.
        if proxy.variant is Variant.SOTW:
            for sent_response in overtaken(proxy.pushes, response.type_url):
                self._finished(node, sent_response, now)
        push = SentResponse(delivery, sys.intern(response.nonce), now, response)
        proxy.pushes.append(push)
        self._waiting[push] = None
        if self._follower is not None:
            self._follower.sent(node, push)
        return NO_DELAYS if delivery.began is None else Delays(since(delivery, now))

    def answered(self, node: NodeKey, response: Response, rejection: Rejection | None, now: float) -> Delays:
        """Record an ACK or NACK; return the delay of an ACK since the first event behind the response."""
        self.answers += 1
        if (proxy := self._record(node)) is None:
            return NO_DELAYS
        # Newest first, because nearly every answer is to the last response.
        for push in reversed(proxy.pushes):
            if push.response is response:
                was_ended = push.state is not Answer.PENDING
                delay = answer(push, rejection, now)
                self._finished(node, push, now, again=was_ended)
                return NO_DELAYS if delay is None else Delays(None, delay)
        return NO_DELAYS

    def changed(self, node: NodeKey, response: Response) -> frozenset[ObjectKey]:
        """Return the named objects that led to a response; empty if the client requested the response."""
        proxy = self._record(node)
        pushes = () if proxy is None else reversed(proxy.pushes)
        due = next((push.delivery.due for push in pushes if push.response is response), ())
        causes = (cause for wave in due for cause in wave.causes) if isinstance(due, tuple) else ()
        return frozenset(item.object for item in causes)

    def unanswered_age(self, now: float) -> float:
        """Return the seconds since the oldest unanswered response to any proxy was sent, or 0."""
        return max(0.0, now - min((sent_response.sent for sent_response in self._waiting), default=now))

    def pushes(self, node: NodeKey, now: float, date: datetime) -> tuple[Push, ...]:
        """Return a proxy's last pushes, newest first; `now` and `date` are the same moment on both clocks."""
        proxy = self._record(node)
        return () if proxy is None else tuple(shown(push, now, date) for push in reversed(proxy.pushes))

    def _finished(self, node: NodeKey, push: SentResponse, now: float, *, again: bool = False) -> None:
        self._waiting.pop(push, None)
        if self._follower is not None and not again:
            self._follower.finished(node, push, now)

    def _touches(self, node: NodeKey, proxy: Record) -> tuple[GroupWave, ...]:
        proxy.group = self._cache.group(node)
        touches = self._triggers.waves(proxy.group)
        if not proxy.moved:
            return touches
        return tuple(sorted((*touches, *proxy.moved), key=lambda group_wave: group_wave.moment))

    def _step(
        self, node: NodeKey, proxy: Record, kind: TypeRecord, content: Content, response: Response, size: int
    ) -> Delivery:
        """Apply a response to the versions that a proxy holds; return the step, shared by equal proxies."""
        touches = self._touches(node, proxy)
        # Normalise both moments, so the key is equal for nearly all proxies: most streams are older than
        # the oldest wave, and the exact moment of opening does not matter then.
        opened = max(proxy.opened, touches[0].moment - 1) if touches else proxy.opened
        seen = next((touch.moment for touch in reversed(touches) if touch.moment <= kind.seen), -1)
        kind.seen = self._newest
        stood = ClientPosition(touches, opened, seen, response.version, size)
        known = kind.client_versions.taken
        if (
            (known is not None and known.content is content and known.stood == stood)
            and not kind.fresh
            and (after := known.after()) is not None
        ):
            kind.client_versions = after
            return known.delivery
        before, again = kind.client_versions, proxy.again and kind.fresh
        kind.fresh = False
        move, kind.client_versions = before.after(
            content, lambda: self._served_resources(node, response.type_url).versions
        )
        waves = causing(touches, content, opened, seen, is_news=move.is_news)
        delivery = self._delivery(
            content, move, waves or (Trigger.RECONNECTED if again else Trigger.SUBSCRIBED), response, size
        )
        if waves and before.versions:
            before.taken = Transition(content, stood, weakref.ref(kind.client_versions), delivery)
        return delivery

    def _delivery(
        self,
        content: Content,
        move: VersionChanges,
        due: tuple[Wave, ...] | Trigger,
        response: Response,
        size: int,
    ) -> Delivery:
        """Return the record of a step; the same object as for the previous proxy if all values are equal."""
        if (
            (last := content.delivery) is not None
            and (last.move is move and last.due == due)
            and (last.version == response.version and last.size == size)
        ):
            return last
        began = min(wave.since for wave in due) if isinstance(due, tuple) else None
        # Cached with the content, because the next proxy of the group usually takes the same step.
        content.delivery = delivery = Delivery(content, move, due, response.version, size, began)
        return delivery

    def _served_resources(self, node: NodeKey, type_url: TypeUrl) -> Resources:
        snapshot = self._cache.snapshot(node)
        return NO_RESOURCES if snapshot is None else snapshot.resources(type_url)

    def _is_here(self, group: GroupKey) -> bool:
        return any(
            proxy.streams for node in self._cache.members(group) if (proxy := self._record(node)) is not None
        )

    def _record(self, node: NodeKey) -> Record | None:
        keeper = self._find(node)
        return None if keeper is None else keeper.pushes

    def _forget(self, node: NodeKey) -> None:
        """Forget the pushes of a proxy; the other parts of the proxy's record stay."""
        # Unanswered responses of a forgotten proxy must not count in `unanswered_age`.
        del self._order[node]
        if (keeper := self._find(node)) is not None and keeper.pushes is not None:
            for push in keeper.pushes.pushes:
                self._waiting.pop(push, None)
            keeper.pushes = None
