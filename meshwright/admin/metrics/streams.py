"""What is counted of streams: connections, responses, answers, and how long a change takes to a proxy."""

from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from meshwright.admin.metrics.tallies import Durations, Tallies, Tally
from meshwright.sidecars.type_words import short_type

LATENCIES: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds of the histograms that begin with an event, in seconds."""


TYPES: Final = 64
"""Types whose word is remembered: a client may ask for any, and most are called by the same word."""


@dataclass(frozen=True, slots=True)
class _OfType:
    """The counters of one type, found once: they move several times for every push."""

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
        self._opened = Counter("meshwright_xds_streams_opened", "Streams accepted.", ["protocol"], registry=r)
        self._refused = Counter("meshwright_xds_streams_refused", "Streams refused.", ["reason"], registry=r)
        self._exceeded = Counter(
            "meshwright_xds_budget_exceeded",
            "Calls ended or turned away for what they took.",
            ["bound"],
            registry=r,
        )
        self._handshakes = Counter("meshwright_xds_handshakes", "TLS handshakes begun.", registry=r)
        self._failed = Counter(
            "meshwright_xds_handshakes_failed", "TLS handshakes that failed.", ["reason"], registry=r
        )
        self._ended = Counter(
            "meshwright_xds_connections_ended", "Connections ended for their cost.", ["cause"], registry=r
        )
        self._used = Counter(
            "meshwright_xds_connections_used", "Connections on which a stream was asked for.", registry=r
        )

    def _traffic(self, r: CollectorRegistry) -> None:
        self._responses = Counter("meshwright_xds_responses", "Responses sent.", ["type"], registry=r)
        self._sent = Counter("meshwright_xds_resources_sent", "Resources in responses.", ["type"], registry=r)
        self._large = Counter(
            "meshwright_xds_large_responses",
            "Responses larger than gRPC's clients take unless told.",
            ["type"],
            registry=r,
        )
        self._bytes = Counter("meshwright_xds_sent_bytes", "Bytes of responses.", ["type"], registry=r)
        self._acks = Counter("meshwright_xds_acks", "Responses acknowledged.", ["type"], registry=r)
        self._nacks = Counter("meshwright_xds_nacks", "Responses rejected.", ["type"], registry=r)
        self._pushed = Durations(
            "meshwright_event_to_send_seconds",
            "From a source's event to a response with what it changed.",
            LATENCIES,
            r,
        )
        self._acknowledged = Durations(
            "meshwright_event_to_ack_seconds",
            "From a source's event to the answer that acknowledges it.",
            LATENCIES,
            r,
        )

    def stream_opened(self, protocol: str) -> None:
        """Count a stream that was accepted: `delta` or `sotw`."""
        self._opened.labels(protocol).inc()

    def stream_refused(self, reason: str) -> None:
        """Count a stream that was refused; `reason` is a word of a closed set."""
        self._refused.labels(reason).inc()

    def exceeded(self, bound: str) -> None:
        """Count a call that was over a bound of its certificate's budget; `bound` is of a closed set."""
        self._exceeded.labels(bound).inc()

    def handshake(self) -> None:
        """Count a TLS handshake; those that never open a stream are these less the connections used."""
        self._handshakes.inc()

    def handshakes_failed(self, reason: str, count: int) -> None:
        """Count TLS handshakes that failed, as far as gRPC says why; `reason` is of a closed set."""
        self._failed.labels(reason).inc(count)

    def connection_ended(self, cause: str) -> None:
        """Count a connection that was ended for what it cost; `cause` is a word of a closed set."""
        self._ended.labels(cause).inc()

    def connection_used(self) -> None:
        """Count a connection whose first stream was asked for, whether it was let in or not."""
        self._used.inc()

    def sent(self, type_url: str, resources: int, size: int) -> None:
        """Count a response sent, the resources in it, and its bytes."""
        tallies = self._of(type_url)
        tallies.responses.total += 1
        tallies.resources.total += resources
        tallies.bytes.total += size

    def large(self, type_url: str) -> None:
        """Count a response that is larger than gRPC's clients take unless they are told."""
        self._large.labels(short_type(type_url)).inc()

    def pushed(self, seconds: float) -> None:
        """Count a response that a change led to, `seconds` after the change's first event."""
        self._pushed.observe(seconds)

    def acknowledged(self, seconds: float) -> None:
        """Count the ACK of such a response, `seconds` after that event."""
        self._acknowledged.observe(seconds)

    def acked(self, type_url: str) -> None:
        """Count a response acknowledged."""
        self._of(type_url).acks.total += 1

    def nacked(self, type_url: str) -> None:
        """Count a response rejected."""
        self._of(type_url).nacks.total += 1

    def _of(self, type_url: str) -> _OfType:
        if (found := self._by_type.get(type_url)) is None:
            word = short_type(type_url)
            if (found := self._by_word.get(word)) is None:
                families = (self._responses, self._sent, self._bytes, self._acks, self._nacks)
                found = self._by_word[word] = _OfType(*(self._tallies.of(f.labels(word)) for f in families))
            if len(self._by_type) < TYPES:
                self._by_type[type_url] = found
        return found
