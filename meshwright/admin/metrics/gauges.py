"""Metrics of one moment: gauges that are all set together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Gauge


@dataclass(frozen=True, slots=True)
class Gauges:
    """Values of one moment; a mapping is from label value to number."""

    streams: Mapping[str, int] = field(default_factory=dict)
    """By protocol: `delta`, `sotw`."""
    proxies: Mapping[str, int] = field(default_factory=dict)
    """By state: `connected`, `expected`, `disconnected`, `ended`."""
    shared_identities: int = 0
    """Number of identities that several connected proxies use."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """Distinct resources in snapshots, by type."""
    withheld: Mapping[str, int] = field(default_factory=dict)
    """Number of resources served in an older version or reduced, because of a rejection, by type."""
    groups: int = 0
    problems: Mapping[str, int] = field(default_factory=dict)
    """By severity."""
    source_age: Mapping[str, float] = field(default_factory=dict)
    """Seconds since the last complete read, by source."""
    source_event_age: Mapping[str, float] = field(default_factory=dict)
    """Seconds since the last change, by source."""
    source_failing: Mapping[str, bool] = field(default_factory=dict)
    source_objects: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By source and state: `good`, `stale` (a newer version is invalid), `refused` (never valid)."""
    source_held: Mapping[str, int] = field(default_factory=dict)
    """Number of parts of a source that stay in force although reported as deleted, by source."""
    state_failing: bool = False
    ledger_unwritten: int = 0
    certificates: int = 0
    certificates_running_out: int = 0
    trusted_roots: int = 0
    """Number of CA certificates in the trust bundle of the mesh."""
    ejected_endpoints: int = 0
    """Number of endpoints that a proxy reports as ejected."""
    reporting_proxies: int = 0
    """Number of proxies whose agents have reported traffic statistics recently."""
    root_stage: int = 0
    """Stage of the root change, from 1; 0 without one."""
    unacked_age: float = 0.0
    """Age of the oldest unanswered response in seconds."""
    loop_lateness: float = 0.0
    """Greatest lateness of the event loop since the last measurement, in seconds."""


class MomentMetrics:
    """The gauges; `measured` sets all of them together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._served(registry)
        self._kept(registry)
        self._sources(registry)
        self._longest = 0.0

    def _served(self, r: CollectorRegistry) -> None:
        self._streams = Gauge("meshwright_xds_streams", "Open xDS streams.", ["protocol"], registry=r)
        self._proxies = Gauge("meshwright_proxies", "Proxies by state.", ["state"], registry=r)
        self._shared = Gauge(
            "meshwright_shared_identities", "Identities that several connected proxies use.", registry=r
        )
        self._resources = Gauge(
            "meshwright_snapshot_resources", "Distinct resources in snapshots.", ["type"], registry=r
        )
        self._withheld = Gauge(
            "meshwright_withheld_resources",
            "Resources served in an older or reduced version, because the newest version was rejected.",
            ["type"],
            registry=r,
        )
        self._groups = Gauge("meshwright_groups", "Groups of proxies with one configuration.", registry=r)
        self._certificates = Gauge(
            "meshwright_service_certificates", "Service certificates in use.", registry=r
        )
        self._running_out = Gauge(
            "meshwright_certificates_running_out",
            "Service certificates with less than a quarter of their validity left that cannot be renewed.",
            registry=r,
        )
        self._trusted_roots = Gauge(
            "meshwright_trust_bundle_roots",
            "Root certificates with which sidecars verify their peers.",
            registry=r,
        )
        self._root_stage = Gauge(
            "meshwright_root_rotation_stage",
            "Stage of the rotation of the root; 0 without a rotation.",
            registry=r,
        )
        self._ejected = Gauge(
            "meshwright_ejected_endpoints",
            "Endpoints that at least one proxy has ejected, as agents report.",
            registry=r,
        )
        self._reporting = Gauge(
            "meshwright_reporting_proxies",
            "Proxies whose agents have reported statistics recently.",
            registry=r,
        )
        self._unacked = Gauge(
            "meshwright_xds_unacked_age_seconds",
            "Age of the oldest response without an answer, in seconds.",
            registry=r,
        )

    def _kept(self, r: CollectorRegistry) -> None:
        self._state_failing = Gauge(
            "meshwright_state_failing", "1 while the state directory cannot be written.", registry=r
        )
        self._unwritten = Gauge(
            "meshwright_ledger_unwritten",
            "Proxy certificates with changes that are not written to the ledger yet.",
            registry=r,
        )

    def _sources(self, r: CollectorRegistry) -> None:
        self._age = Gauge(
            "meshwright_source_age_seconds",
            "Seconds since the source was last read completely.",
            ["source"],
            registry=r,
        )
        self._event_age = Gauge(
            "meshwright_source_event_age_seconds", "Seconds since the last change.", ["source"], registry=r
        )
        self._failing = Gauge(
            "meshwright_source_failing",
            "1 while a source fails and its last objects stay in force.",
            ["source"],
            registry=r,
        )
        self._objects = Gauge(
            "meshwright_source_objects", "Objects by state.", ["source", "state"], registry=r
        )
        self._held = Gauge(
            "meshwright_source_held",
            "Empty answers of the source that are not in force yet.",
            ["source"],
            registry=r,
        )
        self._problems = Gauge("meshwright_problems", "Problems of the input.", ["severity"], registry=r)
        self._late = Gauge(
            "meshwright_event_loop_lateness_seconds",
            "Maximum lateness of the event loop since the last measurement, in seconds.",
            registry=r,
        )
        self._latest = Gauge(
            "meshwright_event_loop_longest_lateness_seconds",
            "The most that the event loop was ever late.",
            registry=r,
        )

    def measured(self, now: Gauges) -> None:
        """Set all gauges; a label value that no longer exists loses its series."""
        set_all(self._streams, _single(now.streams))
        set_all(self._proxies, _single(now.proxies))
        self._shared.set(now.shared_identities)
        set_all(self._resources, _single(now.resources))
        set_all(self._withheld, _single(now.withheld))
        set_all(self._problems, _single(now.problems))
        set_all(self._age, _single(now.source_age))
        set_all(self._event_age, _single(now.source_event_age))
        set_all(self._failing, _single(now.source_failing))
        set_all(self._held, _single(now.source_held))
        set_all(self._objects, {(source, state): n for (source, state), n in now.source_objects.items()})
        self._groups.set(now.groups)
        self._certificates.set(now.certificates)
        self._running_out.set(now.certificates_running_out)
        self._trusted_roots.set(now.trusted_roots)
        self._root_stage.set(now.root_stage)
        self._ejected.set(now.ejected_endpoints)
        self._reporting.set(now.reporting_proxies)
        self._state_failing.set(now.state_failing)
        self._unwritten.set(now.ledger_unwritten)
        self._unacked.set(now.unacked_age)
        self._late.set(now.loop_lateness)
        self._longest = max(self._longest, now.loop_lateness)
        self._latest.set(self._longest)


def _single(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(label,): value for label, value in values.items()}


def set_all(gauge: Gauge, values: Mapping[tuple[str, ...], float]) -> None:
    """Set the series of a gauge, and remove its other series."""
    known: Iterable[Sequence[str]] = list(gauge._metrics)  # noqa: SLF001 - the library has no public list
    for labels in known:
        if tuple(labels) not in values:
            gauge.remove(*labels)
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
