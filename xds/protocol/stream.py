"""The common part of both variants of a stream's state machine.

Requests and snapshots in, responses out.

A stream works without await, clock and transport. The rules of docs/understand/xds-rules.md decide what is
sent and when; their numbers are cited at the lines that implement them.

A push has three steps, so traffic never refers to a resource missing at the client (make before break, O2).
First come clusters, endpoints and secrets. When the client has acknowledged the clusters, listeners and
routes follow. When those are acknowledged too, resources are removed. `_flush` runs the steps, and
`_is_closed` is the gate between them; `on_deadline` opens the gate for a slow client. For example, for a
route to a new cluster: the cluster with its endpoints, the ACK, then the route.

Read `xds.protocol.type_state` next: the state of one type.
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
    Narrowing,
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
"""Types that wait for each other's acknowledgements."""
_NONE: Final[frozenset[Nonce]] = frozenset()  # one for all streams: each of its own would be 216 bytes


Accepted = Callable[[TypeUrl, ResourceName], Version | None]
"""A function from type and name to the version accepted by a client.

None if it never requested the type.
"""


class Stream(abc.ABC):
    """The conversation with one client. The variants in `sotw` and `delta` differ in reading and listing."""

    _SUPERSEDES: ClassVar[bool]
    """True if only the newest response of a type can be answered (state of the world)."""

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
        """Return the requested types in push order. The channels must not be changed."""
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
        """Return the version of a resource accepted by the client.

        None if it never requested the type.
        """
        channel = self._channels.get(type_url)
        return None if channel is None else channel.accepted(name)

    def channel(self, type_url: TypeUrl) -> Channel:
        """Return the channel of a requested type.

        The channel must not be changed; raises KeyError for any other type.
        """
        return self._channels[type_url]

    @property
    def is_waiting(self) -> bool:
        """Return whether a response is held back until the client answers or `on_deadline` is called."""
        if not self._is_pending():
            return False
        news = any(c.has_news for c in self._present(_SWITCH)) or self._listeners_gone()
        removals = any(c.has_removals for c in self._channels.values())
        return (news and (self._is_closed((CLUSTER,)) or self._awaits_interim())) or (
            removals and self._is_closed((CLUSTER, LISTENER, ROUTE))
        )

    def awaiting(self, type_url: TypeUrl, nonce: Nonce) -> Response | None:
        """Return the response answered by a request with this nonce, or None."""
        channel = self._channels.get(type_url)
        if channel is None:
            return None
        return channel.awaiting(nonce)

    def acknowledged(self, request: Request | DeltaRequest) -> Response | None:
        """Process a plain ACK, without a change of subscription and without a response to send.

        Return the accepted response. For any other request return None, without a change.
        """
        channel = self._channels.get(request.type_url)
        if channel is None or request.rejection is not None or self._asks(channel, request):
            return None
        return None if self._is_pending() else channel.acknowledged(request.nonce)

    def on_snapshot(self, snapshot: Snapshot) -> list[Response]:
        """Process a new snapshot; return the responses to send at once (O8)."""
        old, self._snapshot = self._snapshot, snapshot
        if old is None:
            return self._take(old, snapshot)
        # Endpoints, secrets and other types without gates: streams in equal states take equal steps.
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
        """Take a cached step. With an equal nonce the response is the same object as for the other stream."""
        shared.take(channel)
        if shared.response is None:
            return []
        self._responses += 1
        response = shared.numbered(Nonce(sys.intern(str(self._responses))))
        channel.sent(response, supersedes=self._SUPERSEDES)
        return [response]

    def _take(self, old: Snapshot | None, snapshot: Snapshot) -> list[Response]:
        """Replace the snapshot, and mark every name with a difference for sending."""
        # Names are only marked here. Their resources are taken from the newest snapshot when they are due,
        # so that any number of snapshots between two sends result in one response per type.
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
        """Continue without the outstanding answers (O5); return the responses to send.

        Envoy answers only when a cluster has warmed, which may take too long.
        """
        waiting = self._present((CLUSTER, LISTENER, ROUTE))
        self._released = (
            frozenset(response.nonce for channel in waiting for response in channel.unanswered) or _NONE
        )
        return self._flush()

    def take_held(self) -> tuple[Response, ...]:
        """Return the served resources that the client has listed; only incremental clients list any."""
        return ()

    @abc.abstractmethod
    def _asks(self, channel: Channel, request: Request | DeltaRequest) -> bool:
        """Return whether a client's request changes the subscription of a type."""

    @abc.abstractmethod
    def _begin(self, channel: Channel) -> None:
        """Mark the names needed by a channel when the first snapshot arrives after the request."""

    @abc.abstractmethod
    def _news(self, channel: Channel, snapshot: Snapshot) -> tuple[Response | None, Sequence[Resource]]:
        """Build the response with additions and changes.

        Return the response, and the resources new to the client.
        """

    @abc.abstractmethod
    def _removals(self, channel: Channel, snapshot: Snapshot) -> Response | None:
        """Build the response with removals; None if this variant does not announce removals for the type."""

    def _channel(self, type_url: TypeUrl) -> tuple[Channel, bool]:
        """Return the channel of a type, and whether this is the first request for it on the stream."""
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
        whole_table: Resources = NO_RESOURCES,
    ) -> Response:
        """Build and record a response. `whole_table` is the table with all of these resources, unchanged."""
        self._responses += 1
        nonce = Nonce(sys.intern(str(self._responses)))  # W3, D15: unique on the stream
        held = tuple(resources)
        table = whole_table if held and len(held) == len(whole_table) else None
        response = Response(channel.type_url, version, nonce, held, tuple(removed), heartbeat, table)
        channel.sent(response, supersedes=self._SUPERSEDES)
        return response

    def _flush(self) -> list[Response]:
        if self._snapshot is None or not self._is_pending():  # S12: no answer without a snapshot
            return []
        responses = self._make(self._snapshot)
        # Each step checks the gate again, because a response of the step before is unanswered and closes it.
        if not self._is_closed((CLUSTER,)):
            responses += self._switch(self._snapshot)
            if self._is_pending() and not self._is_closed((CLUSTER, LISTENER, ROUTE)):
                responses += self._break(self._snapshot)
        return responses

    def _is_pending(self) -> bool:
        """Return whether any resource or removal may have to be sent.

        False after most requests, which are ACKs.
        """
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
                continue  # the real form would overtake the interim form, and Envoy would drain nothing (O11)
            response = self._news(channel, snapshot)[0] if channel.has_news else None
            if response is None and channel.type_url == LISTENER and channel.has_removals:
                response = self._removals(channel, snapshot)
            if response is not None:
                responses.append(response)
        return responses

    def _break(self, snapshot: Snapshot) -> list[Response]:
        responses, order = list[Response](), self.channels
        if self._is_refused():  # a rejected listener or route may be removed now, which ends the rejection
            order = tuple(sorted(order, key=lambda channel: channel.type_url not in _SWITCH))
        for channel in order:
            if channel.has_removals and (channel.type_url in _SWITCH or not self._is_refused()):
                response = self._removals(channel, snapshot)
                responses += [] if response is None else [response]
        return responses

    def _follow_with_endpoints(self, clusters: Iterable[Resource]) -> None:
        """Send endpoints again after their changed cluster (O3).

        Envoy needs the endpoints to warm the cluster, and may not request them.
        """
        if (endpoints := self._channels.get(ENDPOINT)) is None:
            return
        referred = (reference for cluster in clusters for reference in cluster.references)
        names = {name for type_url, name in referred if type_url == ENDPOINT}
        endpoints.must = joined(endpoints.must, filter(endpoints.subscription.wants, names))

    def _renew(self, narrowings: frozenset[Narrowing]) -> None:
        """Renew the listeners that refer to route configurations with fewer permissions than before (O11)."""
        listeners = self._channels.get(LISTENER)
        if not narrowings or listeners is None or self._snapshot is None:
            return
        result = renewal.referring(self._snapshot, narrowings, listeners.client_versions)
        self._renewing = renewal.together(self._renewing, result)
        listeners.must = joined(listeners.must, result)

    def _interims(self, channel: Channel, snapshot: Snapshot) -> Mapping[ResourceName, Resource]:
        """Return the interim forms to send now in place of listeners. The real forms follow after the ACK."""
        if channel.type_url != LISTENER or not self._renewing:
            return {}
        resources = renewal.interims(snapshot, self._renewing)
        self._renewing = renewal.NOTHING
        channel.hold({name: resource.version for name, resource in resources.items()})
        channel.dirty = joined(channel.dirty, resources)
        return resources

    def _awaits_interim(self) -> bool:
        """Return whether the client has not yet answered the interim form of a listener."""
        return (
            self._interim is not None
            and self._interim not in self._released
            and any(response.nonce == self._interim for response in self._channels[LISTENER].unanswered)
        )

    def _is_closed(self, type_urls: Iterable[TypeUrl]) -> bool:
        """Return whether the client owes an answer for which the next step must wait (O2, O5)."""
        for type_url in type_urls:
            channel = self._channels.get(type_url)
            if channel is not None and any(
                response.nonce not in self._released for response in channel.unanswered
            ):
                return True
        return False

    def _is_refused(self) -> bool:
        """Return whether the client still uses earlier listeners or routes after a rejection (O2).

        The earlier versions may refer to resources missing in the snapshot. These stay until the rejected
        resource is repaired or removed.
        """
        return any(channel.blame for channel in self._present(_SWITCH))

    def _listeners_gone(self) -> bool:
        return any(c.has_removals for c in self._present((LISTENER,)))

    def _present(self, type_urls: Iterable[TypeUrl]) -> list[Channel]:
        return [self._channels[type_url] for type_url in type_urls if type_url in self._channels]
