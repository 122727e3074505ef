"""Metrics of the validating webhook."""

from prometheus_client import CollectorRegistry, Counter


class ReviewMetrics:
    """Counter of the objects reviewed by the validating webhook, by verdict."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reviews = Counter(
            "meshwright_kubernetes_reviews",
            "Objects reviewed by the validating webhook, by verdict.",
            ["verdict"],
            registry=registry,
        )

    def reviewed(self, verdict: str) -> None:
        """Count a reviewed object: `allowed`, `warned`, `refused`, or `unchecked` for lack of time."""
        self._reviews.labels(verdict).inc()
