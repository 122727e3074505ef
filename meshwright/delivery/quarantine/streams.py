"""Rejections for one stream alone, if several proxies share an identity.

A second Envoy with the same credentials (a cloned machine, an agent started twice) cannot bind the ports of
the first one. Such a rejection does not concern the first Envoy, which has acknowledged the same listener.
The record of such a rejection therefore belongs to the stream: only this stream gets a reduced snapshot, and
the record ends with the stream. Rejections because of content stay with the identity (see
`meshwright.delivery.quarantine.quarantine`), because every proxy of the identity would reject the same.
"""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from meshwright.delivery.quarantine.acknowledged_resources import AcknowledgedResources
from meshwright.delivery.quarantine.blame import goes_on
from meshwright.delivery.quarantine.fallback import Empty, Exclusion, fallback
from meshwright.delivery.quarantine.record import Accusation, Moment, Record, StreamRecord, Suspect
from meshwright.delivery.quarantine.records import Records
from xds.cache import NodeKey
from xds.protocol.resources.resource import Reference, Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Response


class Streams:
    """Records of rejections by stream; used if several proxies share an identity."""

    def __init__(self, records: Records, accepted: AcknowledgedResources, empty: Empty) -> None:
        self._records = records
        self._accepted = accepted
        self._empty = empty
        self._changed: dict[int, NodeKey] = {}

    def find(self, stream: int | None) -> Record | None:
        """Return the record of a stream, or `None` for a stream without rejections of its own."""
        record = None if stream is None else self._records.by_stream.get(stream)
        return None if record is None else record.record

    def any_of(self, node: NodeKey) -> bool:
        """Return whether any stream of a proxy has a record of rejections."""
        return any(record.node == node for record in self._records.by_stream.values())

    def lessened(self, stream: int, snapshot: Snapshot) -> Snapshot:
        """Return the fallback snapshot of a stream; `snapshot` is the one served to the proxy."""
        record = self._records.by_stream.get(stream)
        if record is None:
            return snapshot
        if record.latest is None or record.latest[0] is not snapshot:
            record.latest = (snapshot, self._made(record, snapshot))
            if not record.record.accused:
                self.closed(stream)
        return record.latest[1]

    def refuse(
        self,
        stream: int,
        node: NodeKey,
        suspects: Mapping[Suspect, Accusation],
        moment: Moment,
        jitter: float,
    ) -> None:
        """Record a rejection on a stream, caused by one or more of these suspects."""
        record = self._records.by_stream.setdefault(stream, StreamRecord(node))
        record.record.refuse(suspects, moment, jitter)
        self._change(stream, record)

    def accepted(self, stream: int, response: Response, served: Snapshot, moment: Moment) -> bool:
        """Record an ACK on a stream with a record; return True if the search or a verdict has advanced."""
        record = self._records.by_stream[stream]
        there = served.versions(response.type_url)
        now = {(e.type_url, e.name) for e in response.resources if there.get(e.name) == e.version}
        confirmed = record.record.accepted(now)
        if goes_on(record.record, served, now, response.type_url):
            record.record.moved = moment.seconds
            self._change(stream, record)
            return True
        return confirmed

    def again(self, node: NodeKey) -> bool:
        """Offer the rejected resources of all streams of a proxy again; return whether any is offered."""
        offers = [
            (stream, record)
            for stream, record in self._records.by_stream.items()
            if record.node == node and record.record.again(record.record.certain)
        ]
        for stream, record in offers:
            self._change(stream, record)
        return bool(offers)

    def due(self) -> list[float]:
        """Return the times of the next retries of all streams, in monotonic seconds."""
        moments = (record.record.due() for record in self._records.by_stream.values())
        return [moment for moment in moments if moment is not None]

    def on_time(self, now: float) -> bool:
        """Offer all streams their rejected resources with a due retry; return whether any is offered."""
        due = [
            (stream, record)
            for stream, record in self._records.by_stream.items()
            if (at := record.record.due()) is not None and at <= now and record.record.on_time(now)
        ]
        for stream, record in due:
            self._change(stream, record)
        return bool(due)

    def closed(self, stream: int) -> bool:
        """Drop the record of rejections of an ended stream; return whether there was one."""
        record = self._records.by_stream.pop(stream, None)
        if record is not None:
            self._changed[stream] = record.node
        return record is not None

    def take_changes(self) -> Mapping[int, tuple[NodeKey, Callable[[Snapshot], Snapshot] | None]]:
        """Return the streams whose rejected versions have changed since the last call, with their proxies.

        The function of a stream turns the proxy's snapshot into the stream's fallback snapshot. It is `None`
        for a stream whose record of rejections has ended.
        """
        changed, self._changed = self._changed, {}
        return {stream: (node, self._lessening(stream)) for stream, node in changed.items()}

    def _lessening(self, stream: int) -> Callable[[Snapshot], Snapshot] | None:
        if stream not in self._records.by_stream:
            return None
        return lambda snapshot: self.lessened(stream, snapshot)

    def _change(self, stream: int, record: StreamRecord) -> None:
        record.latest = None
        if record.record.accused:
            self._changed[stream] = record.node
        else:
            self.closed(stream)

    def _made(self, stream_record: StreamRecord, snapshot: Snapshot) -> Snapshot:
        record = stream_record.record
        record.lapse(snapshot, ())
        if not record.accused:
            return snapshot
        group, rejected = self._records.group(stream_record.node), record.rejected
        kept = record.good

        def good(key: Reference) -> Resource | None:
            candidates = [kept[key]] if key in kept else []
            if group is not None:
                candidates += self._accepted.good(stream_record.node, group, key)
            refused: Collection[str] = rejected.get(key, frozenset())
            return next((candidate for candidate in candidates if candidate.version not in refused), None)

        excluded = Exclusion(MappingProxyType(dict(rejected)))
        made = fallback(snapshot, excluded, self._empty, good)
        record.good = {key: resource for key, resource in made.looked_up.items() if resource is not None}
        return made.snapshot
