"""Metrics of xDS streams: connections, responses, acknowledgements, and latency from a change to a proxy."""

from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from meshwright.admin.metrics.tallies import Durations, Tallies, Tally
from meshwright.sidecars.type_words import short_type

LATENCIES: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds in seconds of the histograms that begin with an event."""


TYPES: Final = 64
"""Maximum number of cached type URLs: a client may request any type, and unknown types share one label."""


@dataclass(frozen=True, slots=True)
class _OfType:
    """The counters of one resource type, looked up once because every push updates several of them."""

    responses: Tally
    resources: Tally
    bytes: Tally
    acks: Tally
    nacks: Tally


class StreamMetrics:
    """Counters and histograms of the ADS server's streams."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._by_word: dict[str, _OfType] = {}
        self._by_type: dict[str, _OfType] = {}
        self._tallies = Tallies(registry)
        self._connections(registry)
        self._traffic(registry)

    def _connections(self, r: CollectorRegistry) -> None:
        self._opened = Counter(
            "meshwright_xds_streams_opened", "Accepted xDS streams, by protocol.", ["protocol"], registry=r
        )
        self._refused = Counter(
            "meshwright_xds_streams_refused", "Refused xDS streams, by reason.", ["reason"], registry=r
        )
        self._moved = Counter(
            "meshwright_xds_streams_moved",
            "Streams that this server ended so that their proxies connect to other servers of the mesh.",
            registry=r,
        )
        self._exceeded = Counter(
            "meshwright_xds_budget_exceeded",
            "Calls ended or refused because their certificate exceeded its budget, by bound.",
            ["bound"],
            registry=r,
        )
        self._handshakes = Counter(
            "meshwright_xds_handshakes", "TLS handshakes at the xDS port, failed ones included.", registry=r
        )
        self._failed = Counter(
            "meshwright_xds_handshakes_failed",
            "Failed TLS handshakes at the xDS port, by reason.",
            ["reason"],
            registry=r,
        )
        self._ended = Counter(
            "meshwright_xds_connections_ended",
            "Connections that the server closed because of their cost, by cause.",
            ["cause"],
            registry=r,
        )
        self._used = Counter(
            "meshwright_xds_connections_used",
            "Connections with at least one request for a stream.",
            registry=r,
        )

    def _traffic(self, r: CollectorRegistry) -> None:
        self._responses = Counter(
            "meshwright_xds_responses", "xDS responses sent, by type.", ["type"], registry=r
        )
        self._sent = Counter(
            "meshwright_xds_resources_sent", "Resources in the sent responses, by type.", ["type"], registry=r
        )
        self._large = Counter(
            "meshwright_xds_large_responses",
            "Responses above the default size limit of gRPC clients, 4 MiB.",
            ["type"],
            registry=r,
        )
        self._bytes = Counter(
            "meshwright_xds_sent_bytes", "Bytes of the sent responses, by type.", ["type"], registry=r
        )
        self._acks = Counter(
            "meshwright_xds_acks", "Responses that a proxy acknowledged (ACK), by type.", ["type"], registry=r
        )
        self._nacks = Counter(
            "meshwright_xds_nacks", "Responses that a proxy rejected (NACK), by type.", ["type"], registry=r
        )
        self._pushed = Durations(
            "meshwright_event_to_send_seconds",
            "Seconds from an event of a source to the response with the change.",
            LATENCIES,
            r,
        )
        self._acknowledged = Durations(
            "meshwright_event_to_ack_seconds",
            "Seconds from an event of a source to the ACK of the response.",
            LATENCIES,
            r,
        )

    def stream_opened(self, protocol: str) -> None:
        """Count an accepted stream: `delta` or `sotw`."""
        self._opened.labels(protocol).inc()

    def stream_refused(self, reason: str) -> None:
        """Count a refused stream; `reason` is a word of a closed set."""
        self._refused.labels(reason).inc()

    def streams_moved(self, count: int) -> None:
        """Count streams that were ended so that their proxies connect to other servers."""
        self._moved.inc(count)

    def exceeded(self, bound: str) -> None:
        """Count a call beyond a bound of its certificate's budget; `bound` is a word of a closed set."""
        self._exceeded.labels(bound).inc()

    def handshake(self) -> None:
        """Count a TLS handshake.

        The handshakes without a stream are this number less the number of connections used.
        """
        self._handshakes.inc()

    def handshakes_failed(self, reason: str, count: int) -> None:
        """Count failed TLS handshakes for which gRPC gives a reason; `reason` is a word of a closed set."""
        self._failed.labels(reason).inc(count)

    def connection_ended(self, cause: str) -> None:
        """Count a connection that was closed because of its cost; `cause` is a word of a closed set."""
        self._ended.labels(cause).inc()

    def connection_used(self) -> None:
        """Count a connection at its first request for a stream, accepted or refused."""
        self._used.inc()

    def sent(self, type_url: str, resources: int, size: int) -> None:
        """Count an xDS response with the number of resources, and the `size` in bytes."""
        tallies = self._of(type_url)
        tallies.responses.total += 1
        tallies.resources.total += resources
        tallies.bytes.total += size

    def large(self, type_url: str) -> None:
        """Count an xDS response larger than the default message limit of gRPC clients."""
        self._large.labels(short_type(type_url)).inc()

    def pushed(self, seconds: float) -> None:
        """Count an xDS response caused by a change, sent `seconds` after the first event of the change."""
        self._pushed.observe(seconds)

    def acknowledged(self, seconds: float) -> None:
        """Count the ACK of a response caused by a change, `seconds` after the first event of the change."""
        self._acknowledged.observe(seconds)

    def acked(self, type_url: str) -> None:
        """Count an xDS response acknowledged by a proxy."""
        self._of(type_url).acks.total += 1

    def nacked(self, type_url: str) -> None:
        """Count an xDS response rejected by a proxy."""
        self._of(type_url).nacks.total += 1

    def _of(self, type_url: str) -> _OfType:
        if (of_type := self._by_type.get(type_url)) is None:
            word = short_type(type_url)
            if (of_type := self._by_word.get(word)) is None:
                families = (self._responses, self._sent, self._bytes, self._acks, self._nacks)
                of_type = self._by_word[word] = _OfType(
                    *(self._tallies.tally(f.labels(word)) for f in families)
                )
            # Type URLs come from clients: without a bound, invented ones would fill the memory.
            if len(self._by_type) < TYPES:
                self._by_type[type_url] = of_type
        return of_type
