"""A stream as a value machine, as far as both variants are alike: snapshots and answers in, responses out.

No await, no clock, no transport. What is sent when follows the rules of docs/xds-rules.md, whose numbers
stand at the lines that keep them. A push goes in three steps (make before break, O2): clusters, endpoints
and secrets; when the clusters are warm, listeners and routes; when those are in force, removals.
"""

import abc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from xds.protocol import common_step, renewal
from xds.protocol.common_step import CommonStep
from xds.protocol.resources.name_sets import joined
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    SECRET,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.resources import NO_RESOURCES, Resources
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.resources.versions import NO_VERSIONS
from xds.protocol.subscription import Subscription
from xds.protocol.type_state import Channel
from xds.protocol.wire import DeltaRequest, Nonce, Request, Response

_MAKE: Final = (CLUSTER, ENDPOINT, SECRET)
_SWITCH: Final = (LISTENER, ROUTE)
_WAITING: Final = frozenset((CLUSTER, LISTENER, ROUTE))
"""The types that wait for each other."""
_NONE: Final[frozenset[Nonce]] = frozenset()  # one for all streams: each of its own would be 216 bytes


Accepted = Callable[[TypeUrl, ResourceName], Version | None]
"""Says which version of a resource a client has taken; None if it never asked for the type."""


class Stream(abc.ABC):
    """One client's conversation; its variants, `sotw` and `delta`, differ in how they read and list."""

    _SUPERSEDES: ClassVar[bool]
    """Whether only the newest response of a type can be answered."""

    __slots__ = (
        "__weakref__",
        "_channels",
        "_interim",
        "_others",
        "_released",
        "_renewing",
        "_responses",
        "_snapshot",
    )

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._channels: dict[TypeUrl, Channel] = {}
        self._responses = 0
        self._released = _NONE
        self._others: tuple[Channel, ...] = ()
        self._renewing = renewal.NOTHING
        self._interim: Nonce | None = None

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The types asked for so far, in the order of a push; to look at, not to change."""
        order = (*_MAKE, *_SWITCH)
        return tuple(
            sorted(
                self._channels.values(),
                key=lambda channel: (
                    order.index(channel.type_url) if channel.type_url in order else len(order),
                    channel.type_url,
                ),
            )
        )

    def accepted(self, type_url: TypeUrl, name: ResourceName) -> Version | None:
        """Return the version of a resource that the client has taken; None if it never asked for the type."""
        channel = self._channels.get(type_url)
        return None if channel is None else channel.accepted(name)

    def channel(self, type_url: TypeUrl) -> Channel:
        """Return the channel of a type that was asked for; to look at, not to change."""
        return self._channels[type_url]

    @property
    def is_waiting(self) -> bool:
        """Say whether something is held back until the client answers, or `on_deadline` is called."""
        if not self._is_pending():
            return False
        news = any(c.has_news for c in self._present(_SWITCH)) or self._listeners_gone()
        removals = any(c.has_removals for c in self._channels.values())
        return (news and (self._is_closed((CLUSTER,)) or self._awaits_interim())) or (
            removals and self._is_closed((CLUSTER, LISTENER, ROUTE))
        )

    def awaiting(self, type_url: TypeUrl, nonce: Nonce) -> Response | None:
        """Return the response that a request with that nonce would answer, None if it answers none."""
        channel = self._channels.get(type_url)
        if channel is None:
            return None
        return channel.awaiting(nonce)

    def acknowledged(self, request: Request | DeltaRequest) -> Response | None:
        """Take a request that accepts what is awaited, asks for nothing, and leads to nothing.

        Return the response that it accepts; None for any other request, which is not taken.
        """
        channel = self._channels.get(request.type_url)
        if channel is None or request.rejection is not None or self._asks(channel, request):
            return None
        return None if self._is_pending() else channel.acknowledged(request.nonce)

    def on_snapshot(self, snapshot: Snapshot) -> list[Response]:
        """Take what the client should have from now on; return what can be said at once (O8)."""
        old, self._snapshot = self._snapshot, snapshot
        if old is None:
            return self._take(old, snapshot)
        # Of a type that nothing waits for, a change comes to the same for all who hold and want the same.
        step = snapshot.changed_since(old)
        type_url = next(iter(step), None)
        if len(step) != 1 or type_url in _WAITING or type_url is None or self._is_pending():
            return self._take(old, snapshot)
        if (channel := self._channels.get(type_url)) is None:
            return []
        if (shared := common_step.find(type(self), channel, snapshot)) is not None:
            return self._repeat(channel, shared)
        state = common_step.state(channel)
        responses = self._take(old, snapshot)
        if state is not None and not self._is_pending():
            common_step.remember(type(self), channel, state, snapshot, responses)
        return responses

    def _repeat(self, channel: Channel, shared: CommonStep) -> list[Response]:
        """Take a step as another stream has taken it, with the very response if it has the same nonce."""
        shared.take(channel)
        if shared.response is None:
            return []
        self._responses += 1
        response = shared.numbered(Nonce(sys.intern(str(self._responses))))
        channel.sent(response, supersedes=self._SUPERSEDES)
        return [response]

    def _take(self, old: Snapshot | None, snapshot: Snapshot) -> list[Response]:
        """Take a snapshot in the place of another one."""
        # Names are marked, and nothing is made of them: what is said is taken from the newest snapshot in its
        # turn, so that any number of snapshots between two sends come to one response of a type.
        if old is None:
            for channel in self._channels.values():
                channel.in_force = snapshot.versions(channel.type_url)
                channel.subscription.settle(channel.in_force)
                self._begin(channel)
        else:
            step = snapshot.changed_since(old)
            for type_url, names in step.items():
                if (touched := self._channels.get(type_url)) is not None:
                    touched.touch(names, old, snapshot)
            if ROUTE in step and LISTENER in self._channels:
                self._renew(renewal.narrowed(old, snapshot))
        return self._flush()

    def on_deadline(self) -> list[Response]:
        """Go on without the answers awaited now (O5: a client may warm for longer than is good)."""
        waiting = self._present((CLUSTER, LISTENER, ROUTE))
        self._released = frozenset(each.nonce for channel in waiting for each in channel.unanswered) or _NONE
        return self._flush()

    @abc.abstractmethod
    def _asks(self, channel: Channel, request: Request | DeltaRequest) -> bool:
        """Say whether a request asks for more or less than was asked for."""

    @abc.abstractmethod
    def _begin(self, channel: Channel) -> None:
        """Mark what is due on a channel when the first snapshot comes after its request."""

    @abc.abstractmethod
    def _news(self, channel: Channel, snapshot: Snapshot) -> tuple[Response | None, Sequence[Resource]]:
        """Make the response that adds or changes, and say which resources are new to the client in it."""

    @abc.abstractmethod
    def _removals(self, channel: Channel, snapshot: Snapshot) -> Response | None:
        """Make the response that takes back, if this variant has one for the type."""

    def _channel(self, type_url: TypeUrl) -> tuple[Channel, bool]:
        """Return the type's channel, and whether this is the type's first request on the stream."""
        first = type_url not in self._channels
        if first:
            there = NO_VERSIONS if self._snapshot is None else self._snapshot.versions(type_url)
            self._channels[type_url] = Channel(type_url, Subscription(type_url), there)
            others = [t for t in sorted(self._channels) if t not in _MAKE and t not in _SWITCH]
            self._others = tuple(self._present((ENDPOINT, SECRET, *others)))
        return self._channels[type_url], first

    def _respond(
        self,
        channel: Channel,
        version: Version,
        resources: Iterable[Resource],
        removed: Iterable[ResourceName] = (),
        *,
        heartbeat: bool = False,
        of: Resources = NO_RESOURCES,
    ) -> Response:
        """Make a response and remember it; `of` is the table that all its resources stand in, as they are."""
        self._responses += 1
        nonce = Nonce(sys.intern(str(self._responses)))  # W3, D15: never twice on a stream
        held = tuple(resources)
        table = of if held and len(held) == len(of) else None
        response = Response(channel.type_url, version, nonce, held, tuple(removed), heartbeat, table)
        channel.sent(response, supersedes=self._SUPERSEDES)
        return response

    def _flush(self) -> list[Response]:
        if self._snapshot is None or not self._is_pending():  # S12: never answer from nothing
            return []
        responses = self._make(self._snapshot)
        # Each step asks anew: what the step before has sent a moment ago is unanswered, and closes the gate.
        if not self._is_closed((CLUSTER,)):
            responses += self._switch(self._snapshot)
            if self._is_pending() and not self._is_closed((CLUSTER, LISTENER, ROUTE)):
                responses += self._break(self._snapshot)
        return responses

    def _is_pending(self) -> bool:
        """Say whether there may be anything to send: after most requests, which are ACKs, there is not."""
        for c in self._channels.values():
            if c.dirty or c.must or c.gone or c.owed or c.absent or c.all_dirty or c.all_must:
                return True
        return False

    def _make(self, snapshot: Snapshot) -> list[Response]:
        responses = []
        if (clusters := self._channels.get(CLUSTER)) is not None and clusters.has_news:
            response, changed = self._news(clusters, snapshot)
            if response is not None:
                responses.append(response)
                self._follow_with_endpoints(changed)
        for channel in self._others:
            response = self._news(channel, snapshot)[0] if channel.has_news else None
            if response is not None:
                responses.append(response)
        return responses

    def _switch(self, snapshot: Snapshot) -> list[Response]:
        responses = []
        for channel in self._present(_SWITCH):
            if channel.type_url == LISTENER and self._awaits_interim():
                continue  # as it is, it would overtake its interim form, and nothing would be drained (O11)
            response = self._news(channel, snapshot)[0] if channel.has_news else None
            if response is None and channel.type_url == LISTENER and channel.has_removals:
                response = self._removals(channel, snapshot)
            if response is not None:
                responses.append(response)
        return responses

    def _break(self, snapshot: Snapshot) -> list[Response]:
        responses, order = list[Response](), self.channels
        if self._is_refused():  # what was refused may be what goes: then nothing is referred to any more
            order = tuple(sorted(order, key=lambda channel: channel.type_url not in _SWITCH))
        for channel in order:
            if channel.has_removals and (channel.type_url in _SWITCH or not self._is_refused()):
                response = self._removals(channel, snapshot)
                responses += [] if response is None else [response]
        return responses

    def _follow_with_endpoints(self, clusters: Iterable[Resource]) -> None:
        """O3: Envoy warms a changed cluster until its endpoints come again, and may not ask for them."""
        if (endpoints := self._channels.get(ENDPOINT)) is None:
            return
        referred = (reference for cluster in clusters for reference in cluster.references)
        names = {name for type_url, name in referred if type_url == ENDPOINT}
        endpoints.must = joined(endpoints.must, filter(endpoints.subscription.wants, names))

    def _renew(self, routes: frozenset[ResourceName]) -> None:
        """O11: have listeners drained that refer to route configurations which permit less than they did."""
        listeners = self._channels.get(LISTENER)
        if not routes or listeners is None or self._snapshot is None:
            return
        found = renewal.referring(self._snapshot, routes, listeners.held)
        self._renewing = renewal.together(self._renewing, found)
        listeners.must = joined(listeners.must, found)

    def _interims(self, channel: Channel, snapshot: Snapshot) -> Mapping[ResourceName, Resource]:
        """Return what is sent now in the place of listeners, which come as they are when it is answered."""
        if channel.type_url != LISTENER or not self._renewing:
            return {}
        found = renewal.interims(snapshot, self._renewing)
        self._renewing = renewal.NOTHING
        channel.hold({name: each.version for name, each in found.items()})
        channel.dirty = joined(channel.dirty, found)
        return found

    def _awaits_interim(self) -> bool:
        """Say whether the client has not answered the interim form of a listener."""
        return (
            self._interim is not None
            and self._interim not in self._released
            and any(each.nonce == self._interim for each in self._channels[LISTENER].unanswered)
        )

    def _is_closed(self, type_urls: Iterable[TypeUrl]) -> bool:
        """Say whether the client owes an answer that the next step has to wait for (O2, O5)."""
        for type_url in type_urls:
            channel = self._channels.get(type_url)
            if channel is not None and any(each.nonce not in self._released for each in channel.unanswered):
                return True
        return False

    def _is_refused(self) -> bool:
        """Say whether the client goes on with listeners or routes that it had, for it refused others (O2).

        What those refer to it needs; that is taken back when what it refused is mended, or has gone.
        """
        return any(channel.blame for channel in self._present(_SWITCH))

    def _listeners_gone(self) -> bool:
        return any(c.has_removals for c in self._present((LISTENER,)))

    def _present(self, type_urls: Iterable[TypeUrl]) -> list[Channel]:
        return [self._channels[type_url] for type_url in type_urls if type_url in self._channels]
