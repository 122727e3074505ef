"""What became of the pods that were to be made."""

from prometheus_client import CollectorRegistry, Counter, Histogram


class InjectionMetrics:
    """Pods that API servers asked the injector about."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pods = Counter(
            "meshwright_injection_pods",
            "Pods that an API server asked the injector about, by what became of them.",
            ["result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "meshwright_injection_seconds",
            "How long such a question took to answer.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=registry,
        )

    def injection(self, result: str, seconds: float) -> None:
        """Count a pod: `injected`, `unchanged`, `skipped` or `refused`."""
        self._pods.labels(result).inc()
        self._seconds.observe(seconds)
