"""Readers of documents: a proxy that keeps polling counts as connected."""

import itertools
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from meshwright.sidecars.document.translate import DOCUMENT, NAME
from xds.cache import NodeKey, Snapshots, Watch
from xds.hooks import Observer, Peer, StreamEnd
from xds.limits import Limits
from xds.protocol.resources.resource import Version
from xds.protocol.wire import Nonce, Response
from xds.stream_status import StreamStatus, SyncState, TypeStatus, Variant

LINGER_SECONDS: Final = 90.0
"""Seconds after the last request for which a proxy counts as connected; the longest wait is 60 s."""


@dataclass(slots=True)
class Reader:
    """A polling proxy.

    The record has the open requests, the time of the last request, and the versions sent and confirmed.
    """

    number: int
    peer: Peer
    since: datetime
    seen: float
    watch: Watch
    asking: int = 0
    sent_version: str = ""
    sent_at: datetime | None = None
    response: Response | None = None
    confirmed: str = ""


class Readers:
    """The current readers. The observer sees each as a stream, and each answer as state of the world.

    While a reader counts as connected its node is watched, so that the document stays current between two
    requests. `now` is any clock in seconds that only goes forward.
    """

    def __init__(self, observer: Observer, catalog: Snapshots) -> None:
        self._observer = observer
        self._catalog = catalog
        self._numbers = itertools.count(1)
        self._readers: dict[NodeKey, Reader] = {}

    def too_many(self, node: NodeKey, limits: Limits) -> bool:
        """Return whether one more concurrent request would exceed the limits, of this proxy or of all."""
        own = self._readers[node].asking if node in self._readers else 0
        every = sum(reader.asking for reader in self._readers.values())
        return own >= (limits.streams_per_certificate or own + 1) or every >= (limits.streams or every + 1)

    def began(self, node: NodeKey, peer: Peer, now: float, moment: datetime) -> None:
        """Record the begin of a proxy's request; the first request makes the proxy a reader."""
        reader = self._readers.get(node)
        if reader is None:
            # The callback is empty: the watch alone makes the catalog keep the document of the node current.
            watch = self._catalog.watch(node, lambda: None)
            reader = self._readers[node] = Reader(next(self._numbers), peer, moment, now, watch)
            self._observer.opened(node, peer, Variant.SOTW)
        reader.seen = now
        reader.asking += 1

    def ended(self, node: NodeKey, now: float) -> None:
        """Record the end of a proxy's request."""
        if (reader := self._readers.get(node)) is not None:
            reader.seen = now
            reader.asking -= 1

    def confirmed(self, node: NodeKey, version: str, newest: str) -> None:
        """Record the version in a proxy's request as confirmed.

        Only the version last given, or the newest, counts.
        """
        reader = self._readers[node]
        if version and version in (reader.sent_version, newest) and version != reader.confirmed:
            reader.confirmed = version
            if reader.response is not None:
                self._observer.answered(node, reader.response, None)
                reader.response = None

    def record_answer(
        self, node: NodeKey, version: str, moment: datetime, response: Response, size: int
    ) -> None:
        """Record the version of the document in an answer to a proxy."""
        reader = self._readers[node]
        reader.sent_version, reader.sent_at, reader.response = version, moment, response
        self._observer.sent(node, response, size)

    def sweep(self, now: float) -> None:
        """Drop readers that have not sent a request for LINGER_SECONDS."""
        for node, reader in tuple(self._readers.items()):
            if not reader.asking and now - reader.seen > LINGER_SECONDS:
                self._gone(node, StreamEnd.CLIENT)

    def all_gone(self) -> None:
        """Drop every reader, because the server ends."""
        for node in tuple(self._readers):
            self._gone(node, StreamEnd.SHUTDOWN)

    def statuses(self) -> tuple[StreamStatus, ...]:
        """Return the stream status of each reader, in the order of their first request."""
        return tuple(_status(node, reader) for node, reader in self._readers.items())

    def shown(self) -> list[dict[str, object]]:
        """Return each reader for the debug page: proxy, versions given and confirmed, waiting request."""
        return [
            {
                "proxy": node,
                "given": reader.sent_version or None,
                "confirmed": reader.confirmed or None,
                "waiting": reader.asking > 0,
            }
            for node, reader in self._readers.items()
        ]

    def _gone(self, node: NodeKey, ending: StreamEnd) -> None:
        reader = self._readers.pop(node)
        self._catalog.unwatch(reader.watch)
        self._observer.closed(node, reader.peer, ending, "")


def _status(node: NodeKey, reader: Reader) -> StreamStatus:
    pending = reader.sent_version and reader.sent_version != reader.confirmed
    state = SyncState.PENDING if pending else SyncState.SYNCED if reader.confirmed else SyncState.ASKED
    version = reader.sent_version or reader.confirmed
    document = TypeStatus(
        type_url=DOCUMENT,
        state=state,
        sent_version=Version(version),
        sent_nonce=Nonce(""),
        sent_at=reader.sent_at,
        acked_version=Version(reader.confirmed),
        rejection=None,
        rejected=(),
        wildcard=False,
        names=(NAME,),
    )
    served = bool(version)
    return StreamStatus(
        reader.number, node, None, reader.peer.address, Variant.SOTW, reader.since, served, (document,)
    )
