"""Metrics of the export of the control plane's own trace spans."""

from prometheus_client import CollectorRegistry, Counter


class SpanMetrics:
    """Counters of trace spans accepted by the collector, and of dropped spans."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._exported = Counter(
            "meshwright_spans_exported",
            "Spans of the control plane that the collector accepted.",
            registry=registry,
        )
        self._dropped = Counter(
            "meshwright_spans_dropped",
            "Dropped spans of the control plane, by reason.",
            ["reason"],
            registry=registry,
        )

    def spans_exported(self, count: int) -> None:
        """Count spans that the collector has accepted."""
        self._exported.inc(count)

    def spans_dropped(self, reason: str, count: int) -> None:
        """Count dropped spans: `queue-full`, or `rejected` by the collector."""
        self._dropped.labels(reason).inc(count)
