"""Observer of the ADS server: passes stream events to the registry, the records, the metrics and the log."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import structlog

from certs.errors import PeerRefused
from certs.peer import read_peer
from meshwright.delivery.history.history import PushHistory
from meshwright.delivery.meters import StreamMeter
from meshwright.delivery.proxies.ended_connections import EndedConnections
from meshwright.delivery.proxies.journal import Journal
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.mesh.objects import ObjectKey
from meshwright.sidecars.type_words import short_type
from xds.budget import Excess
from xds.cache import NodeKey
from xds.hooks import Cause, Peer, StreamEnd
from xds.protocol.wire import Node, Rejection, Response
from xds.stream_status import Variant

REMEMBERED_CONNECTIONS: Final = 10_000
"""Number of connections remembered by peer address.

A forgotten connection is counted again with its next stream.
"""

_log = structlog.get_logger("controller.ads")
_logging = logging.getLogger("controller.ads")


class AnswerListener(Protocol):
    """Receiver of a proxy's ACKs and NACKs, which decides about the resources served to the proxy."""

    def opened(self, node: NodeKey) -> None:
        """Handle a new xDS stream of a proxy."""

    def decides(self, node: NodeKey) -> bool:
        """Return whether an ACK of this proxy can change the served resources: only after a rejection."""

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        changed: frozenset[ObjectKey],
        stream: int | None,
    ) -> None:
        """Handle an answer; `changed` are the objects behind a rejected response.

        `stream` is given if several proxies share the identity, or if the stream has rejections of its own.
        """

    def has_record(self, stream: int) -> bool:
        """Return whether a stream has rejections of its own."""

    def takes_calls(self, node: NodeKey, response: Response) -> bool:
        """Return whether a proxy has accepted all inbound listeners after acknowledging this response."""

    def closed(self, stream: int) -> None:
        """Handle the end of an xDS stream."""


class MeshObserver:
    """Observer of the ADS server; also counts open streams by variant. Use on the event loop."""

    def __init__(
        self,
        registry: ProxyRegistry,
        metrics: StreamMeter,
        history: PushHistory,
        journal: Journal,
        readiness: EndpointReadiness,
        loop: AnswerListener,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._metrics = metrics
        self._history = history
        self._journal = journal
        self._readiness = readiness
        self._loop = loop
        self._now = monotonic
        self._connections: dict[str, None] = {}
        self._own = 0
        self._ended = EndedConnections()
        self.streams = {variant.value: 0 for variant in Variant}

    def handshake(self) -> None:
        """Count a TLS handshake, except those of the control plane's own connections."""
        if self._own:
            self._own -= 1
        else:
            self._metrics.handshake()

    def ended(self, peer: Peer, cause: Cause) -> None:
        """Count a closed connection; the next `report` logs it."""
        self._metrics.connection_ended(cause.value)
        self._ended.note(peer, cause)

    def report(self) -> None:
        """Log the closed connections, with one line for each cause; call this from time to time."""
        for ended in self._ended.due(self._now()):
            certificate = _common_name(ended.last)
            fields = {"cause": ended.cause.value, "count": ended.count, "last": ended.last.address}
            _log.warning("xDS connections closed by the server", **fields, certificate=certificate)

    @contextlib.contextmanager
    def own_connection(self) -> Iterator[None]:
        """Mark a connection to a server of this process, so one handshake is not counted.

        The handshake may be reported before or after the block ends; only the number matters. After an
        exception the mark is removed.
        """
        self._own += 1
        try:
            yield
        except BaseException:
            self._own = max(self._own - 1, 0)
            raise

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Record a new xDS stream of a proxy, and notify the listener."""
        self._count_connection(peer)
        proxy = self._registry.opened(node_key, peer.address, variant)
        # The history interprets records by the stream that was open then, so older ones are written first.
        self._journal.settle((node_key,))
        self._history.opened(node_key, variant, self._now())
        self._readiness.opened(node_key)
        self._loop.opened(node_key)
        self._metrics.stream_opened(variant.value)
        self.streams[variant.value] += 1
        fields = {"proxy": node_key, "peer": peer.address, "protocol": variant.value}
        if proxy.expected is not None:
            _log.info("stream opened", **fields)
        else:
            _log.warning("stream waits until its workload is known", **fields)

    def refused(self, peer: Peer, reason: str) -> None:
        """Count a refused stream; the refusing part logs the cause."""
        self._count_connection(peer)
        self._metrics.stream_refused(reason)
        _log.info("stream refused", peer=peer.address, reason=reason)

    def _count_connection(self, peer: Peer) -> None:
        if peer.address in self._connections:
            return
        if len(self._connections) >= REMEMBERED_CONNECTIONS:
            del self._connections[next(iter(self._connections))]
        self._connections[peer.address] = None
        self._metrics.connection_used()

    def exceeded(self, node_key: NodeKey | None, peer: Peer, excess: Excess) -> None:
        """Count and log a call in which a client exceeded a limit."""
        self._metrics.exceeded(excess.bound.value)
        _log.warning(
            "client exceeded a limit",
            proxy=node_key,
            peer=peer.address,
            bound=excess.bound.value,
            value=excess.value,
            limit=excess.limit,
        )

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Count an xDS response, and record the response in the journal."""
        self._registry.proxy(node_key).large.sent(response, size)
        self._metrics.sent(response.type_url, len(response.resources), size)
        self._journal.sent(node_key, response, size)
        if _logging.isEnabledFor(
            logging.DEBUG
        ):  # checked first, because building an unwritten line is expensive
            _log.debug(
                "response sent",
                proxy=node_key,
                type=short_type(response.type_url),
                resources=len(response.resources),
                removed=len(response.removed),
                bytes=size,
            )

    def large(self, node_key: NodeKey, node: Node | None, response: Response, size: int) -> None:
        """Count a large response, and log the first of its type, because a failing client is silent."""
        self._metrics.large(response.type_url)
        agent = node.user_agent if node is not None else ""
        large = self._registry.proxy(node_key).large
        if (first := large.sending(response, size, agent)) is not None:
            say = _log.warning if first.is_suspect else _log.info
            kind = short_type(response.type_url)
            fields = {"proxy": node_key, "type": kind, "bytes": size, "user_agent": agent[:200]}
            say("large response sent", **fields, **({"hint": first.hint} if first.hint else {}))

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """Count an ACK.

        Log a NACK as an error with the proxy's message, because our configuration caused it.
        """
        self._registry.proxy(node_key).large.answered(response)
        # The usual ACK changes no decision, so its record can wait in the journal.
        if rejection is None and not self._loop.decides(node_key):
            self._journal.accepted(node_key, response)
        else:
            self._decide(node_key, response, rejection, stream)
        if rejection is None:
            self._metrics.acked(response.type_url)
            if self._readiness.waits_for(node_key, response.type_url) and self._loop.takes_calls(
                node_key, response
            ):
                self._readiness.acknowledged(node_key, response.type_url)
            return
        self._metrics.nacked(response.type_url)
        _log.error(
            "response rejected",
            proxy=node_key,
            type=short_type(response.type_url),
            code=rejection.code,
            said=rejection.message,
        )

    def held(self, node_key: NodeKey, response: Response) -> None:
        """Record the resources that a reconnecting proxy holds already."""
        self._journal.held(node_key, response)

    def _decide(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int
    ) -> None:
        """Let the listener decide about a proxy's resources after an answer; write earlier records first."""
        # A NACK is judged by the versions acknowledged before.
        self._journal.settle((node_key,))
        changed = self._history.changed(node_key, response) if rejection is not None else frozenset()
        delays = self._history.answered(node_key, response, rejection, self._now())
        if delays.acknowledged is not None:
            self._metrics.acknowledged(delays.acknowledged)
        is_own = self._registry.has_several(node_key) or self._loop.has_record(stream)
        self._loop.answered(node_key, response, rejection, changed, stream if is_own else None)

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """Handle the end of a stream.

        A stream refused after the opening also counts as refused.
        """
        variant = self._registry.closed(node_key, peer.address)
        self._loop.closed(stream)
        # Before the history marks the unanswered responses of this stream.
        self._journal.settle((node_key,))
        self._history.closed(node_key, self._now())
        if ending is StreamEnd.REFUSED:
            self._metrics.stream_refused(detail)
        self.streams[variant.value] -= 1
        _log.info("stream closed", proxy=node_key, peer=peer.address, ending=ending.value, detail=detail)


def _common_name(peer: Peer) -> str:
    """Return the common name in a peer's certificate; empty without a readable certificate."""
    try:
        return read_peer(peer.certificate).common_name if peer.certificate else ""
    except PeerRefused:
        return ""
