"""All metrics of the server in one Prometheus registry."""

from importlib.metadata import version
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    ProcessCollector,
    generate_latest,
)

from meshwright.admin.metrics.enrolment import EnrolmentMetrics
from meshwright.admin.metrics.expiry import ExpiryMetrics
from meshwright.admin.metrics.gauges import MomentMetrics
from meshwright.admin.metrics.injection import InjectionMetrics
from meshwright.admin.metrics.reports import ReportMetrics
from meshwright.admin.metrics.reviews import ReviewMetrics
from meshwright.admin.metrics.spans import SpanMetrics
from meshwright.admin.metrics.streams import StreamMetrics
from meshwright.admin.metrics.watches import WatchMetrics
from meshwright.admin.metrics.waves import WaveMetrics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(
    StreamMetrics,
    WaveMetrics,
    MomentMetrics,
    WatchMetrics,
    ReportMetrics,
    ReviewMetrics,
    ExpiryMetrics,
    EnrolmentMetrics,
    InjectionMetrics,
    SpanMetrics,
):
    """The server's metrics in a registry of their own, readable from any thread.

    A label never has values that grow with proxies, services or objects.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Each class is initialized by name: their initializers take a registry and do not call super().
        StreamMetrics.__init__(self, self.registry)
        WaveMetrics.__init__(self, self.registry)
        MomentMetrics.__init__(self, self.registry)
        ExpiryMetrics.__init__(self, self.registry)
        ReportMetrics.__init__(self, self.registry)
        WatchMetrics.__init__(self, self.registry)
        ReviewMetrics.__init__(self, self.registry)
        EnrolmentMetrics.__init__(self, self.registry)
        InjectionMetrics.__init__(self, self.registry)
        SpanMetrics.__init__(self, self.registry)
        build = Gauge(
            "meshwright_build_info",
            "Always 1; the label has the version of the server.",
            ["version"],
            registry=self.registry,
        )
        build.labels(version("meshwright")).set(1)
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
