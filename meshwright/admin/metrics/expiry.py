"""When the first certificate ends, of those that proxies hold."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

from meshwright.admin.metrics.gauges import set_all


class ExpiryMetrics:
    """A minimum for each kind: no label grows with proxies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._expiry = Gauge(
            "meshwright_certificate_acknowledged_expiry_seconds",
            "Until the first certificate ends of those that connected proxies have acknowledged.",
            ["kind"],
            registry=registry,
        )

    def expires(self, seconds: Mapping[str, float]) -> None:
        """Take over how long the first of each kind still lives; a kind of which there is none goes."""
        set_all(self._expiry, {(kind,): left for kind, left in seconds.items()})
