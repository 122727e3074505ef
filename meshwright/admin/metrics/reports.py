"""Metrics of reports to a Kubernetes cluster: conditions of objects, and Events."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class ReportMetrics:
    """Counters of conditions and Events written to Kubernetes, and of failed write requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reports = Counter(
            "meshwright_kubernetes_reports",
            "Conditions and Events written to the cluster.",
            ["what"],
            registry=registry,
        )
        self._report_failures = Counter(
            "meshwright_kubernetes_report_failures",
            "Failed requests to write a condition or an Event, by reason.",
            ["what", "reason"],
            registry=registry,
        )
        self._leads_reports = Gauge(
            "meshwright_kubernetes_reporting",
            "1 if this server writes conditions and Events as the leader, else 0.",
            registry=registry,
        )

    def reported(self, written_kind: str, failed: str = "") -> None:
        """Count a written `status` or `event`, or a failed request with its reason in one word."""
        if failed:
            self._report_failures.labels(written_kind, failed).inc()
        else:
            self._reports.labels(written_kind).inc()

    def reporting(self, *, leads: bool) -> None:
        """Record whether this server is the leader, which alone writes conditions and Events."""
        self._leads_reports.set(leads)
