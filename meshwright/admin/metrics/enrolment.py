"""Metrics of enrolment: requests of machines to join or renew, and requests for roots."""

from prometheus_client import CollectorRegistry, Counter


class EnrolmentMetrics:
    """Counters of the machines' requests at the enrolment port and the renewal port."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "meshwright_enrolment_requests",
            "Requests of machines at the enrolment port and the renewal port, by method and result.",
            ["method", "result"],
            registry=registry,
        )

    def enrolled(self, method: str, result: str) -> None:
        """Count a request by its method and its result, which is a word of a closed set."""
        self._requests.labels(method, result).inc()
