"""What became of machines that ask to join, to renew, or whom to trust."""

from prometheus_client import CollectorRegistry, Counter


class EnrolmentMetrics:
    """Requests at the joining port and the renewal port."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "meshwright_enrolment_requests",
            "Requests of machines at both ports, by method and result.",
            ["method", "result"],
            registry=registry,
        )

    def enrolled(self, method: str, result: str) -> None:
        """Count a request: its method, and a word of a closed set for what became of it."""
        self._requests.labels(method, result).inc()
