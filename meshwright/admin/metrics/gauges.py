"""Gauges of the server: metrics of one moment, all set together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Gauge


@dataclass(frozen=True, slots=True)
class Gauges:
    """Values of all gauges at one moment; a mapping is from label value to number."""

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
    """The Prometheus gauges of the server; `measured` sets all of them together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._served(registry)
        self._kept(registry)
        self._sources(registry)
        self._longest = 0.0

    def _served(self, r: CollectorRegistry) -> None:
        self._streams = Gauge("meshwright_xds_streams", "Open xDS streams.", ["protocol"], registry=r)
        self._proxies = Gauge("meshwright_proxies", "Known proxies, by state.", ["state"], registry=r)
        self._shared = Gauge(
            "meshwright_shared_identities", "Identities that several connected proxies share.", registry=r
        )
        self._resources = Gauge(
            "meshwright_snapshot_resources",
            "Distinct resources in the snapshots of all groups, by type.",
            ["type"],
            registry=r,
        )
        self._withheld = Gauge(
            "meshwright_withheld_resources",
            "Resources served in an older or reduced version, because a proxy rejected the newest.",
            ["type"],
            registry=r,
        )
        self._groups = Gauge(
            "meshwright_groups", "Groups of proxies with the same configuration.", registry=r
        )
        self._certificates = Gauge(
            "meshwright_service_certificates", "Service certificates in use.", registry=r
        )
        self._running_out = Gauge(
            "meshwright_certificates_running_out",
            "Service certificates with less than a quarter of their lifetime left, because renewal fails.",
            registry=r,
        )
        self._trusted_roots = Gauge(
            "meshwright_trust_bundle_roots",
            "Root certificates in the trust bundle of the sidecars.",
            registry=r,
        )
        self._root_stage = Gauge(
            "meshwright_root_rotation_stage",
            "Stage of a root change: 1 trusting, 2 replacing, 3 retiring, 0 without a change.",
            registry=r,
        )
        self._ejected = Gauge(
            "meshwright_ejected_endpoints",
            "Endpoints that at least one proxy has ejected, as the agents report.",
            registry=r,
        )
        self._reporting = Gauge(
            "meshwright_reporting_proxies",
            "Proxies with a recent report of traffic statistics from their agents.",
            registry=r,
        )
        self._unacked = Gauge(
            "meshwright_xds_unacked_age_seconds",
            "Seconds since the oldest response without an ACK or NACK was sent.",
            registry=r,
        )

    def _kept(self, r: CollectorRegistry) -> None:
        self._state_failing = Gauge(
            "meshwright_state_failing",
            "1 while the state directory or the shared store cannot be written, else 0.",
            registry=r,
        )
        self._unwritten = Gauge(
            "meshwright_ledger_unwritten",
            "Proxy certificates with changes that are not yet written to the ledger file.",
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
            "meshwright_source_event_age_seconds",
            "Seconds since the last change of the source.",
            ["source"],
            registry=r,
        )
        self._failing = Gauge(
            "meshwright_source_failing",
            "1 while the source cannot be read and its last objects stay in force, else 0.",
            ["source"],
            registry=r,
        )
        self._objects = Gauge(
            "meshwright_source_objects",
            "Objects of the source: good, stale (an older version is in force) or refused.",
            ["source", "state"],
            registry=r,
        )
        self._source_held = Gauge(
            "meshwright_source_held",
            "Parts, such as a kind, that stay in force although the source reported them as empty.",
            ["source"],
            registry=r,
        )
        self._problems = Gauge(
            "meshwright_problems", "Problems of objects and sources, by severity.", ["severity"], registry=r
        )
        self._late = Gauge(
            "meshwright_event_loop_lateness_seconds",
            "Longest delay of the event loop in seconds since the last measurement.",
            registry=r,
        )
        self._latest = Gauge(
            "meshwright_event_loop_longest_lateness_seconds",
            "Longest delay of the event loop in seconds since the start of the server.",
            registry=r,
        )

    def measured(self, now: Gauges) -> None:
        """Set all gauges to these values; label values no longer present lose their series."""
        set_all(self._streams, _single(now.streams))
        set_all(self._proxies, _single(now.proxies))
        self._shared.set(now.shared_identities)
        set_all(self._resources, _single(now.resources))
        set_all(self._withheld, _single(now.withheld))
        set_all(self._problems, _single(now.problems))
        set_all(self._age, _single(now.source_age))
        set_all(self._event_age, _single(now.source_event_age))
        set_all(self._failing, _single(now.source_failing))
        set_all(self._source_held, _single(now.source_held))
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
    """Set a gauge's series to these values by label values, and remove all other series of the gauge."""
    known: Iterable[Sequence[str]] = list(gauge._metrics)  # noqa: SLF001 - the library has no public list
    for labels in known:
        if tuple(labels) not in values:
            gauge.remove(*labels)
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
