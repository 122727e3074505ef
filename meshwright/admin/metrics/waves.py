"""Metrics of changes: events, waves and their work, checks, and certificates."""

from prometheus_client import CollectorRegistry, Counter, Histogram


class WaveMetrics:
    """Counters and histograms for the path from a source's event to published snapshots."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._changes(registry)
        self._work(registry)
        self._checks(registry)

    def _changes(self, r: CollectorRegistry) -> None:
        self._events = Counter(
            "meshwright_events", "Changes reported by sources.", ["source", "kind"], registry=r
        )
        self._waves = Counter(
            "meshwright_waves",
            "Waves (computations of the mesh after changes), by result.",
            ["result"],
            registry=r,
        )
        self._wave_seconds = Histogram(
            "meshwright_wave_seconds",
            "Seconds of a wave, from the start of its computation to published snapshots.",
            registry=r,
        )

    def _work(self, r: CollectorRegistry) -> None:
        self._values = Counter(
            "meshwright_values",
            "Derived values in waves: computed, reused, or stopped (computed without a change).",
            ["result"],
            registry=r,
        )
        self._encoded = Counter("meshwright_resources_encoded", "Resources that were encoded.", registry=r)
        self._touched = Counter(
            "meshwright_proxies_touched",
            "Connected proxies whose snapshot was replaced by a wave.",
            registry=r,
        )
        self._failures = Counter(
            "meshwright_group_failures",
            "Failed computations of a group, which keeps its last good snapshot.",
            registry=r,
        )

    def _checks(self, r: CollectorRegistry) -> None:
        self._verifications = Counter(
            "meshwright_verifications",
            "Checks of published snapshots against a full computation.",
            registry=r,
        )
        self._differences = Counter(
            "meshwright_verification_differences",
            "Differences found by checks of published snapshots against a full computation.",
            registry=r,
        )
        self._beats = Histogram(
            "meshwright_event_loop_beat_seconds",
            "Delay of each beat of the event loop in seconds.",
            buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
            registry=r,
        )
        self._issued = Counter(
            "meshwright_certificates_issued",
            "Issued certificates, by purpose (service, proxy or gateway) and issuer.",
            ["kind", "issuer"],
            registry=r,
        )
        self._renewed = Counter(
            "meshwright_certificates_renewed",
            "Service certificates that replaced an earlier one, by issuer.",
            ["issuer"],
            registry=r,
        )
        self._not_issued = Counter(
            "meshwright_certificates_failed",
            "Failed attempts to issue a service certificate, by issuer and reason.",
            ["issuer", "reason"],
            registry=r,
        )

    def event(self, source: str, kind: str, count: int = 1) -> None:
        """Count changes from a source.

        `kind` is the kind of an object, or another word of a closed set, for example `TrafficTarget`; never a
        name.
        """
        self._events.labels(source, kind).inc(count)

    def wave(self, seconds: float, *, published: bool) -> None:
        """Count a wave, with its duration in seconds and whether snapshots were published."""
        self._waves.labels("published" if published else "unchanged").inc()
        self._wave_seconds.observe(seconds)

    def wave_work(self, *, computed: int, reused: int, stopped: int, encoded: int, touched: int) -> None:
        """Count the work of one wave.

        `computed`: values whose function ran. `reused`: values that were still valid. `stopped`: values whose
        function ran with an unchanged result. `encoded`: encoded pieces. `touched`: connected proxies with a
        new snapshot.
        """
        self._values.labels("computed").inc(computed)
        self._values.labels("reused").inc(reused)
        self._values.labels("stopped").inc(stopped)
        self._encoded.inc(encoded)
        self._touched.inc(touched)

    def verified(self, differences: int) -> None:
        """Count a comparison of the published snapshots with a full computation, and its differences."""
        self._verifications.inc()
        self._differences.inc(differences)

    def loop_beat(self, late: float) -> None:
        """Count a beat of the event loop, which was `late` seconds late."""
        self._beats.observe(late)

    def group_failed(self) -> None:
        """Count a failed computation of a group of proxies, which keeps the last good snapshot."""
        self._failures.inc()

    def issued(self, kind: str, issuer: str, count: int = 1) -> None:
        """Count certificates issued to a `service`, `proxy` or `gateway`; `issuer` is from a closed set."""
        self._issued.labels(kind, issuer).inc(count)

    def renewed(self, issuer: str, count: int) -> None:
        """Count service certificates that replaced an earlier one."""
        self._renewed.labels(issuer).inc(count)

    def not_issued(self, issuer: str, reason: str, count: int) -> None:
        """Count failed attempts to issue a certificate; `issuer` and `reason` are words of closed sets."""
        self._not_issued.labels(issuer, reason).inc(count)
