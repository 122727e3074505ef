"""Metrics of sidecar injection."""

from prometheus_client import CollectorRegistry, Counter, Histogram


class InjectionMetrics:
    """Counters of the Pods reviewed by the injector, and of the injection configurations."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pods = Counter(
            "meshwright_injection_pods",
            "Pods reviewed by the injector, by result and deciding reason.",
            ["result", "reason"],
            registry=registry,
        )
        self._seconds = Histogram(
            "meshwright_injection_seconds",
            "Seconds for the review of one pod by the injector.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=registry,
        )

        self._configurations = Counter(
            "meshwright_injection_configurations",
            "Injection configurations that were read: taken or refused.",
            ["result"],
            registry=registry,
        )

    def injection(self, result: str, reason: str, seconds: float) -> None:
        """Count a reviewed Pod: `injected`, `unchanged`, `skipped` or `refused`, with the deciding reason."""
        self._pods.labels(result, reason).inc()
        self._seconds.observe(seconds)

    def injection_configuration(self, *, taken: bool) -> None:
        """Count an injection configuration after reading: accepted (`taken`) or refused."""
        self._configurations.labels("taken" if taken else "refused").inc()
