"""What is counted of reports: what is told of a cluster's objects where their owners look."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class ReportMetrics:
    """Conditions and Events that were written, and those that could not be."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reports = Counter(
            "meshwright_kubernetes_reports",
            "Conditions and Events that were written.",
            ["what"],
            registry=registry,
        )
        self._report_failures = Counter(
            "meshwright_kubernetes_report_failures",
            "Requests for reports that failed.",
            ["what", "reason"],
            registry=registry,
        )
        self._reporting = Gauge(
            "meshwright_kubernetes_reporting",
            "1 where this server is the one that writes reports.",
            registry=registry,
        )

    def reported(self, what: str, failed: str = "") -> None:
        """Count a write of `status` or `event`, or a request that failed, and why in a word."""
        if failed:
            self._report_failures.labels(what, failed).inc()
        else:
            self._reports.labels(what).inc()

    def reporting(self, *, leads: bool) -> None:
        """Note whether this server is the one that writes."""
        self._reporting.set(leads)
