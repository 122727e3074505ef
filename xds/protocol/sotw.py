"""The state-of-the-world variant: a request lists all wanted names; LDS and CDS lists are complete."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from xds.protocol.resources.name_sets import NO_NAMES, joined
from xds.protocol.resources.resource import LISTENER, Resource, ResourceName
from xds.protocol.resources.resources import digest
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.resources.versions import version_of
from xds.protocol.stream import Stream
from xds.protocol.subscription import FULL_STATE, NO_CHANGE
from xds.protocol.type_state import Channel
from xds.protocol.wire import DeltaRequest, Request, Response

_AS_IT_IS: Final[Mapping[ResourceName, Resource]] = MappingProxyType({})


class AdsStream(Stream):
    """A stream of the state-of-the-world variant (StreamAggregatedResources)."""

    __slots__ = ()
    _SUPERSEDES = True

    def on_request(self, request: Request) -> list[Response]:
        """Process a request; return the responses to send, in order."""
        channel, first = self._channel(request.type_url)
        if channel.sent_nonce:
            if request.nonce != channel.sent_nonce:  # W4: stale; the ACK of the newest has the names
                channel.answered_late(request.nonce, request.rejection)
                channel.passed_over = joined(channel.passed_over, channel.subscription.lacking(request.names))
                return []
            channel.answered(request.nonce, request.rejection)
        change = channel.subscription.replace(request.names, channel.in_force)
        if channel.passed_over:  # W8: the client had dropped these names meanwhile
            channel.ask(frozenset(filter(channel.subscription.names.__contains__, channel.passed_over)))
            channel.passed_over = NO_NAMES
        if change is not NO_CHANGE:
            if change.dropped:
                channel.drop({name for name in change.dropped if not channel.subscription.wants(name)})
            channel.ask(change.added)  # W8: a name that is requested again is sent again
            channel.all_must = channel.all_must or change.began
            if change.ended:
                channel.drop_unwanted()
        # W1, W13, W17: a first request is answered; an empty answer is sent only where it has a meaning.
        channel.owed = channel.owed or (first and channel.type_url in FULL_STATE)
        return self._flush()

    def _asks(self, channel: Channel, request: Request | DeltaRequest) -> bool:
        if isinstance(request, DeltaRequest) or channel.passed_over:
            return True
        return not channel.subscription.is_last(request.names)

    def _begin(self, channel: Channel) -> None:
        channel.all_must = True

    def _news(self, channel: Channel, snapshot: Snapshot) -> tuple[Response | None, Sequence[Resource]]:
        owed, channel.owed = channel.owed, False
        news, changed = channel.take_news(snapshot)
        if not news and not owed:
            return None, []
        if channel.type_url not in FULL_STATE:  # W10: only what changed
            table = snapshot.resources(channel.type_url)
            return self._respond(channel, table.version, news, whole_table=table), changed
        if channel.type_url == LISTENER:  # no resource refers to a listener, so it can go at once
            channel.take_removals()
        interims = self._interims(channel, snapshot)
        response = self._full(channel, snapshot, interims)
        self._interim = response.nonce if interims else self._interim
        return response, changed

    def _removals(self, channel: Channel, snapshot: Snapshot) -> Response | None:
        channel.take_removals()
        return self._full(channel, snapshot) if channel.type_url in FULL_STATE else None

    def _full(
        self, channel: Channel, snapshot: Snapshot, interims: Mapping[ResourceName, Resource] = _AS_IT_IS
    ) -> Response:
        """Return the complete list for LDS or CDS, where a missing resource counts as removed (W9)."""
        listed = tuple(channel.all_wanted(snapshot))
        if not (channel.retired or interims):
            table = snapshot.resources(channel.type_url)
            return self._respond(channel, table.version, listed, whole_table=table)
        # This list differs from the snapshot, so it needs a version of its own (W2).
        listed = tuple(interims.get(item.name, item) for item in listed)
        listed = tuple(sorted((*listed, *channel.retired.values()), key=lambda resource: resource.name))
        return self._respond(channel, version_of(digest(listed)), listed)
