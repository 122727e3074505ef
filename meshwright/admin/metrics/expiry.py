"""Metrics of the remaining lifetime of certificates used by connected proxies."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

from meshwright.admin.metrics.gauges import set_all


class ExpiryMetrics:
    """Smallest remaining lifetime of each kind of certificate; no label grows with the number of proxies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._expiry = Gauge(
            "meshwright_certificate_acknowledged_expiry_seconds",
            "Seconds until the first certificate expires that a connected proxy has acknowledged, by kind.",
            ["kind"],
            registry=registry,
        )

    def expires(self, seconds: Mapping[str, float]) -> None:
        """Set the seconds to the first expiry of each kind of certificate; others lose their series."""
        set_all(self._expiry, {(kind,): left for kind, left in seconds.items()})
