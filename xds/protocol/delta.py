"""The incremental variant: requests add and remove names, responses carry changes and removals."""

from collections.abc import Sequence

from xds.protocol.lives import kept_alive
from xds.protocol.resources.name_sets import joined, without
from xds.protocol.resources.resource import (
    ENDPOINT,
    EVERY_CONNECTION,
    LISTENER,
    ROUTE,
    Resource,
    ResourceName,
)
from xds.protocol.resources.resources import NO_RESOURCES
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.stream import Stream
from xds.protocol.subscription import NO_CHANGE, Change
from xds.protocol.type_state import TOLD_AT_ONCE, Channel
from xds.protocol.wire import NO_NONCE, DeltaRequest, Request, Response


class DeltaStream(Stream):
    """A stream of the incremental variant (DeltaAggregatedResources)."""

    __slots__ = ("_held",)
    _SUPERSEDES = False

    def __init__(self) -> None:
        super().__init__()
        self._held: tuple[Response, ...] = ()

    def take_held(self) -> tuple[Response, ...]:
        """Return the served resources that a reconnecting client has listed, as responses; once.

        They are not sent, because the client accepted them on an earlier stream, perhaps of another server.
        """
        held, self._held = self._held, ()
        return held

    def on_request(self, request: DeltaRequest) -> list[Response]:
        """Process a request; return the responses to send, in order.

        A stale nonce does not void a request (D2).
        """
        channel, first = self._channel(request.type_url)
        channel.answered(request.nonce, request.rejection)
        change = channel.subscription.change(request.subscribe, request.unsubscribe, channel.in_force)
        if first:
            self._resume(channel, request, change.added)
        if change is not NO_CHANGE:
            self._change(channel, change, first=first)
        self._look_for_absent(channel)
        return self._flush()

    def _change(self, channel: Channel, change: Change, *, first: bool) -> None:
        """Mark the names to send or drop on a channel after a change of its subscription."""
        if not first:
            channel.ask(change.added)  # D3: a name that is requested again is sent again
        if channel.subscription.wildcard:
            channel.must = joined(channel.must, change.dropped)  # D9: the wildcard may still cover it
        else:
            channel.drop(change.dropped)
        if change.began:
            channel.owed = True  # D10
            channel.all_dirty = True
        if change.ended:
            channel.drop_unwanted()

    @property
    def shortest_ttl(self) -> float | None:
        """Return the shortest time to live of anything the client holds, in seconds; None without any."""
        lives = [ttl for channel in self._channels.values() for ttl in channel.mortal.values()]
        if self._snapshot is not None and self._snapshot.shortest_ttl is not None:
            lives.append(self._snapshot.shortest_ttl)
        return min(lives, default=None)

    def on_heartbeat(self) -> list[Response]:
        """Return heartbeats for the resources with a time to live; must be called before they expire (N5)."""
        if self._snapshot is None:
            return []
        responses = []
        for channel in self.channels:
            if living := kept_alive(
                channel.type_url, channel.mortal, channel.client_versions, self._snapshot
            ):
                version = self._snapshot.version(channel.type_url)
                responses.append(self._respond(channel, version, living, heartbeat=True))
        return responses

    def _resume(self, channel: Channel, request: DeltaRequest, requested: frozenset[ResourceName]) -> None:
        """Skip resources already held by the client (D13), but always send endpoints again (O4)."""
        wants = channel.subscription.wants
        channel.resume({name: version for name, version in request.initial_versions.items() if wants(name)})
        if channel.type_url == ENDPOINT:
            channel.must = joined(channel.must, requested)
        else:
            new = channel.client_versions.absent(requested) if channel.client_versions else requested
            channel.must = joined(channel.must, new)
            channel.dirty = joined(channel.dirty, requested - new)
        if self._snapshot is not None:
            self._note_held(channel, self._snapshot)
            self._find_gone(channel, self._snapshot)
            self._renew_unknown(channel, self._snapshot)

    def _note_held(self, channel: Channel, snapshot: Snapshot) -> None:
        """Note the resources that the client has listed in the served version."""
        if not channel.resumed:
            return
        served, versions = snapshot.resources(channel.type_url), channel.client_versions
        held = tuple(item for item in served.ordered if versions.get(item.name) == item.version)
        if held:
            table = served if len(held) == len(served) else None
            response = Response(channel.type_url, served.version, NO_NONCE, held, table=table)
            self._held = (*self._held, response)

    def _asks(self, channel: Channel, request: Request | DeltaRequest) -> bool:
        del channel
        return isinstance(request, Request) or bool(
            request.subscribe or request.unsubscribe or request.initial_versions
        )

    def _begin(self, channel: Channel) -> None:
        if self._snapshot is None:
            return
        channel.all_dirty = True
        self._note_held(channel, self._snapshot)
        self._find_gone(channel, self._snapshot)
        self._renew_unknown(channel, self._snapshot)
        self._look_for_absent(channel)

    def _renew_unknown(self, channel: Channel, snapshot: Snapshot) -> None:
        """Renew listeners for routes held by the client in another version (O11).

        The server does not know the permissions of a version from an earlier stream, so assumes wider ones.
        """
        if channel.type_url == ROUTE and channel.client_versions is not channel.in_force:
            now = snapshot.resources(ROUTE)
            other = (
                name
                for name, version in channel.client_versions.items()
                if name in now and now[name].version != version
            )
            self._renew(
                frozenset((name, EVERY_CONNECTION) for name in other if now[name].renewal is not None)
            )

    def _find_gone(self, channel: Channel, snapshot: Snapshot) -> None:
        if channel.client_versions is not channel.in_force:
            there = snapshot.resources(channel.type_url)
            channel.gone = joined(channel.gone, there.absent(frozenset(channel.client_versions)))
        if hidden := snapshot.on_demand(
            channel.type_url
        ):  # N7: it may have become on-demand since the last stream
            wants = channel.subscription.wants
            held = (
                name for name in hidden if name in channel.client_versions and not wants(name, on_demand=True)
            )
            channel.gone = joined(channel.gone, held)

    def _look_for_absent(self, channel: Channel) -> None:
        """Answer missing names at once (D4), except routes (O6).

        Envoy would wait for ever after such an answer for a route. The exception is a route in a response on
        its way to the client.
        """
        if self._snapshot is None or not channel.must:
            return
        asked = channel.must & channel.on_the_way() if channel.type_url == ROUTE else channel.must
        missing = self._snapshot.resources(channel.type_url).absent(frozenset(asked))
        missing |= {
            name
            for name in asked & self._snapshot.on_demand(channel.type_url)
            if not channel.subscription.wants(name, on_demand=True)
        }
        channel.must = without(channel.must, missing)
        channel.hold(dict.fromkeys(name for name in missing if name in channel.client_versions))
        # A name with a pending removal is announced with that removal: a name is never announced twice (D18).
        channel.absent = joined(channel.absent, missing - channel.gone)

    def _news(self, channel: Channel, snapshot: Snapshot) -> tuple[Response | None, Sequence[Resource]]:
        owed, channel.owed = channel.owed, False
        absent = channel.take_absent()
        news, changed = channel.take_news(snapshot)
        removed = channel.take_removals(TOLD_AT_ONCE) if channel.type_url == LISTENER else []
        if not (news or absent or removed or owed):
            return None, []
        interims = self._interims(channel, snapshot)
        news = [interims.get(resource.name, resource) for resource in news] if interims else news
        table = NO_RESOURCES if interims else snapshot.resources(channel.type_url)
        version, gone = snapshot.version(channel.type_url), sorted({*absent, *removed})
        response = self._respond(channel, version, news, gone, whole_table=table)
        self._interim = response.nonce if interims else self._interim
        return response, changed

    def _removals(self, channel: Channel, snapshot: Snapshot) -> Response | None:
        removed = channel.take_removals(TOLD_AT_ONCE)
        return self._respond(channel, snapshot.version(channel.type_url), (), removed) if removed else None
