"""What is counted and measured, in Prometheus' terms: names, labels and how each is moved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SHORT: Final = {
    "Cluster": "cluster",
    "ClusterLoadAssignment": "endpoint",
    "Secret": "secret",
    "Listener": "listener",
    "RouteConfiguration": "route",
}


def short_type(type_url: str) -> str:
    """Return the label value of a type URL: a word of a closed set, whatever a client sends."""
    return _SHORT.get(type_url.rpartition(".")[2], "other")


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is measured now; the mappings are from label value to number."""

    streams: Mapping[str, int] = field(default_factory=dict)
    """By protocol: `delta`, `sotw`."""
    proxies: Mapping[str, int] = field(default_factory=dict)
    """By state: `connected`, `expected`, `disconnected`."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """Distinct resources in snapshots, by type."""
    groups: int = 0
    problems: Mapping[str, int] = field(default_factory=dict)
    """By severity."""
    source_age: Mapping[str, float] = field(default_factory=dict)
    """Seconds since the last full read, by source."""
    source_failing: Mapping[str, bool] = field(default_factory=dict)
    certificates: int = 0
    loop_lateness: float = 0.0


class Metrics:
    """The server's metrics in a registry of their own; safe to read from another thread.

    No label takes a value that grows with proxies, services or objects.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self._streams = Gauge("meshwright_xds_streams", "Open xDS streams.", ["protocol"], registry=r)
        self._proxies = Gauge("meshwright_proxies", "Proxies by state.", ["state"], registry=r)
        self._opened = Counter("meshwright_xds_streams_opened", "Streams accepted.", ["protocol"], registry=r)
        self._refused = Counter("meshwright_xds_streams_refused", "Streams refused.", ["reason"], registry=r)
        self._handshakes = Counter("meshwright_xds_handshakes", "TLS handshakes begun.", registry=r)
        self._used = Counter(
            "meshwright_xds_connections_used", "Connections on which a stream was asked for.", registry=r
        )
        self._responses = Counter("meshwright_xds_responses", "Responses sent.", ["type"], registry=r)
        self._sent = Counter("meshwright_xds_resources_sent", "Resources in responses.", ["type"], registry=r)
        self._acks = Counter("meshwright_xds_acks", "Responses acknowledged.", ["type"], registry=r)
        self._nacks = Counter("meshwright_xds_nacks", "Responses rejected.", ["type"], registry=r)
        self._resources = Gauge(
            "meshwright_snapshot_resources", "Distinct resources in snapshots.", ["type"], registry=r
        )
        self._groups = Gauge("meshwright_groups", "Groups of proxies with one configuration.", registry=r)
        self._waves = Counter(
            "meshwright_waves", "Computations, by what came of them.", ["result"], registry=r
        )
        self._wave_seconds = Histogram(
            "meshwright_wave_seconds", "From taking up changes to publishing their snapshots.", registry=r
        )
        self._failures = Counter(
            "meshwright_group_failures", "Groups whose last good snapshot was kept.", registry=r
        )
        self._verifications = Counter(
            "meshwright_verifications", "Waves compared with one from nothing.", registry=r
        )
        self._differences = Counter(
            "meshwright_verification_differences", "What those comparisons found.", registry=r
        )
        self._source_age = Gauge(
            "meshwright_source_age_seconds", "Since the last full read.", ["source"], registry=r
        )
        self._source_failing = Gauge(
            "meshwright_source_failing", "1 while a source answers from memory.", ["source"], registry=r
        )
        self._problems = Gauge("meshwright_problems", "Problems of the input.", ["severity"], registry=r)
        self._certificates = Gauge(
            "meshwright_service_certificates", "Service certificates in use.", registry=r
        )
        self._issued = Counter(
            "meshwright_certificates_issued",
            "Certificates issued, or taken over at a start.",
            ["kind"],
            registry=r,
        )
        self._late = Gauge(
            "meshwright_event_loop_lateness_seconds", "How late the loop's last beat came.", registry=r
        )

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def measured(self, now: Gauges) -> None:
        """Take over what was measured; a label value that is gone goes here as well."""
        for gauge, values in (
            (self._streams, now.streams),
            (self._proxies, now.proxies),
            (self._resources, now.resources),
            (self._problems, now.problems),
            (self._source_age, now.source_age),
            (self._source_failing, now.source_failing),
        ):
            for label in {key[0] for key in gauge._metrics} - set(values):  # noqa: SLF001 - no public list
                gauge.remove(label)
            for label, value in values.items():
                gauge.labels(label).set(value)
        self._groups.set(now.groups)
        self._certificates.set(now.certificates)
        self._late.set(now.loop_lateness)

    def stream_opened(self, protocol: str) -> None:
        """Count a stream that was accepted: `delta` or `sotw`."""
        self._opened.labels(protocol).inc()

    def stream_refused(self, reason: str) -> None:
        """Count a stream that was refused; `reason` is a word of a closed set."""
        self._refused.labels(reason).inc()

    def handshake(self) -> None:
        """Count a TLS handshake; those that never open a stream are these less the connections used.

        grpcio says neither that a handshake failed nor why.
        """
        self._handshakes.inc()

    def connection_used(self) -> None:
        """Count a connection whose first stream was asked for, whether it was let in or not."""
        self._used.inc()

    def sent(self, type_url: str, resources: int) -> None:
        """Count a response sent, and the resources in it."""
        self._responses.labels(short_type(type_url)).inc()
        self._sent.labels(short_type(type_url)).inc(resources)

    def acked(self, type_url: str) -> None:
        """Count a response acknowledged."""
        self._acks.labels(short_type(type_url)).inc()

    def nacked(self, type_url: str) -> None:
        """Count a response rejected."""
        self._nacks.labels(short_type(type_url)).inc()

    def wave(self, seconds: float, *, published: bool) -> None:
        """Count a computation and what came of it."""
        self._waves.labels("published" if published else "unchanged").inc()
        self._wave_seconds.observe(seconds)

    def verified(self, differences: int) -> None:
        """Count a check of what is served against its inputs, and what it found."""
        self._verifications.inc()
        self._differences.inc(differences)

    def group_failed(self) -> None:
        """Count a group that kept its last good snapshot."""
        self._failures.inc()

    def issued(self, kind: str, count: int = 1) -> None:
        """Count certificates issued: `service` or `proxy`."""
        self._issued.labels(kind).inc(count)
