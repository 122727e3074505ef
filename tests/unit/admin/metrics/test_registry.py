"""Tests of the metrics registry: Prometheus' text format, and a bounded number of series."""

import re
from collections import Counter as Counts
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from meshwright.admin.metrics.gauges import Gauges
from meshwright.admin.metrics.registry import Metrics
from meshwright.admin.metrics.streams import LATENCIES
from meshwright.admin.metrics.tallies import Durations
from meshwright.providers.contract import Watch

CLUSTER: Final = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
PAGE: Final = Path(__file__).parents[4] / "docs" / "operate" / "metrics.md"


def _samples(metrics: Metrics) -> dict[tuple[str, str], float]:
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_sum"))
        if not sample.name.startswith(("process_", "meshwright_build_info"))
    }


def test_counted_events_are_exported_by_name_and_label() -> None:
    """Each counted event is exported under a metric that begins with `meshwright_`."""
    metrics = Metrics()
    metrics.stream_opened("delta")
    metrics.stream_refused("revoked")
    metrics.exceeded("names")
    metrics.handshake()
    metrics.sent(CLUSTER, 3, 500)
    metrics.acked("type.googleapis.com/envoy.config.listener.v3.Listener")
    metrics.nacked("type.googleapis.com/envoy.config.route.v3.RouteConfiguration")
    metrics.pushed(0.02)
    metrics.acknowledged(0.03)
    metrics.event("directory", "Service", 2)
    metrics.event("directory", "Service")
    metrics.wave(0.1, published=True)
    metrics.wave_work(computed=5, reused=4, stopped=3, encoded=2, touched=7)
    metrics.group_failed()
    metrics.issued("proxy", "built-in")
    result = {name: value for name, value in _samples(metrics).items() if value}
    assert result == {
        ("meshwright_xds_streams_opened_total", "delta"): 1,
        ("meshwright_xds_streams_refused_total", "revoked"): 1,
        ("meshwright_xds_budget_exceeded_total", "names"): 1,
        ("meshwright_xds_handshakes_total", ""): 1,
        ("meshwright_xds_responses_total", "cluster"): 1,
        ("meshwright_xds_resources_sent_total", "cluster"): 3,
        ("meshwright_xds_sent_bytes_total", "cluster"): 500,
        ("meshwright_xds_acks_total", "listener"): 1,
        ("meshwright_xds_nacks_total", "route"): 1,
        ("meshwright_event_to_send_seconds_count", ""): 1,
        ("meshwright_event_to_ack_seconds_count", ""): 1,
        ("meshwright_events_total", "Service,directory"): 3,
        ("meshwright_waves_total", "published"): 1,
        ("meshwright_values_total", "computed"): 5,
        ("meshwright_values_total", "reused"): 4,
        ("meshwright_values_total", "stopped"): 3,
        ("meshwright_resources_encoded_total", ""): 2,
        ("meshwright_proxies_touched_total", ""): 7,
        ("meshwright_wave_seconds_count", ""): 1,
        ("meshwright_group_failures_total", ""): 1,
        ("meshwright_certificates_issued_total", "built-in,proxy"): 1,
    }


def test_label_value_of_a_removed_source_is_dropped() -> None:
    """A gauge without a new value is dropped, so that a removed source does not keep its last age."""
    metrics = Metrics()
    metrics.measured(
        Gauges(
            source_age={"directory": 1.0, "dns": 2.0},
            source_objects={("dns", "good"): 4},
            proxies={"connected": 3},
        )
    )
    metrics.measured(Gauges(source_age={"directory": 4.0}))
    result = {key: value for key, value in _samples(metrics).items() if key[1]}
    assert result == {("meshwright_source_age_seconds", "directory"): 4.0}


def test_watches_are_exported_as_ages_and_counts() -> None:
    """Ages are those of the last reading.

    Counters grow by the new counts, also after a watch restarted from zero.
    """
    metrics, now = Metrics(), datetime(2026, 1, 2, tzinfo=UTC)
    pods = Watch("pods", "", now, now - timedelta(seconds=2), now - timedelta(seconds=5), 1, 40, {"gone": 2})
    smi = Watch("trafficsplits.split.smi-spec.io", error="is not served", error_since=now)
    metrics.watched([pods, smi], now)
    metrics.watched([replace(pods, events=43), smi], now)
    metrics.watched([replace(pods, events=4, relists=0, errors={})], now)
    result = {key: value for key, value in _samples(metrics).items() if key[1] and "_kubernetes_" in key[0]}
    assert result == {
        ("meshwright_kubernetes_heard_age_seconds", "pods"): 0.0,
        ("meshwright_kubernetes_event_age_seconds", "pods"): 2.0,
        ("meshwright_kubernetes_list_age_seconds", "pods"): 5.0,
        ("meshwright_kubernetes_failing", "pods"): 0.0,
        ("meshwright_kubernetes_events_total", "pods"): 47.0,
        ("meshwright_kubernetes_events_total", smi.name): 0.0,
        ("meshwright_kubernetes_relists_total", "pods"): 1.0,
        ("meshwright_kubernetes_relists_total", smi.name): 0.0,
        ("meshwright_kubernetes_errors_total", "gone,pods"): 2.0,
    }


def test_watches_of_several_namespaces_are_one_series() -> None:
    """Watches of one kind share a series: the highest age and the sum of the counts.

    Only a needed watch can be failing.
    """
    metrics, now = Metrics(), datetime(2026, 1, 2, tzinfo=UTC)
    names = ("a", "b", "c")
    watches = [Watch("pods", n, now - timedelta(seconds=i), events=1) for i, n in enumerate(names)]
    long_ago = now - timedelta(hours=1)
    egress = Watch(
        "egresses.policy.openservicemesh.io", heard=long_ago, error="no", error_since=long_ago, needed=False
    )
    metrics.watched([*watches, Watch("pods", "d", error="no", error_since=now), egress], now)
    result = {key: value for key, value in _samples(metrics).items() if key[1] and "_kubernetes_" in key[0]}
    assert result == {
        ("meshwright_kubernetes_heard_age_seconds", "pods"): 2.0,
        ("meshwright_kubernetes_failing", "pods"): 1.0,
        ("meshwright_kubernetes_failing", egress.name): 0.0,  # this watch is optional
        ("meshwright_kubernetes_events_total", "pods"): 3.0,
        ("meshwright_kubernetes_events_total", egress.name): 0.0,
        ("meshwright_kubernetes_relists_total", "pods"): 0.0,
        ("meshwright_kubernetes_relists_total", egress.name): 0.0,
    }


def test_process_metrics_are_exported_without_created_series() -> None:
    """Series with `_created` are left out, because they would add half as many series again."""
    page = Metrics().text().decode()
    names = {sample.name for family in text_string_to_metric_families(page) for sample in family.samples}
    assert {"meshwright_build_info", "process_cpu_seconds_total", "process_resident_memory_bytes"} <= names
    assert [name for name in names if name.endswith("_created")] == []


def test_parts_of_the_registry_share_no_attribute() -> None:
    """Otherwise one part sets the metric of another, for example its gauge with each measurement."""
    parts = Counts[str]()
    for part in Metrics.__bases__:
        parts.update(vars(part(CollectorRegistry())).keys())
    assert {name for name, count in parts.items() if count > 1} == set()


def test_measurement_leaves_the_leader_of_reports() -> None:
    """Two gauges about reports have similar names: of the leader, and of proxies with statistics."""
    metrics = Metrics()
    metrics.reporting(leads=True)
    metrics.measured(Gauges(reporting_proxies=3))
    samples = _samples(metrics)
    assert samples["meshwright_kubernetes_reporting", ""] == 1
    assert samples["meshwright_reporting_proxies", ""] == 3


def test_longest_lateness_is_kept() -> None:
    """The longest lateness is exported beside the last one. A spike between two scrapes is not lost."""
    metrics = Metrics()
    for lateness in (0.25, 0.5, 0.125):
        metrics.measured(Gauges(loop_lateness=lateness))
    result = {name: value for (name, _), value in _samples(metrics).items() if "lateness" in name}
    assert result == {
        "meshwright_event_loop_lateness_seconds": 0.125,
        "meshwright_event_loop_longest_lateness_seconds": 0.5,
    }


def test_histogram_bounds_span_a_millisecond_to_half_a_minute() -> None:
    """The bounds are sorted, without duplicates, and span the possible durations of a change."""
    assert (LATENCIES[0], LATENCIES[-1]) == (0.001, 30.0)
    assert list(LATENCIES) == sorted(set(LATENCIES))


def test_metrics_page_lists_every_metric_and_no_other() -> None:
    """The tables of docs/operate/metrics.md have the name, type and labels of each registered metric.

    The metrics of sidecars have a section of their own.
    """
    ours, heading, _ = PAGE.read_text().partition("\n## A sidecar\n")
    assert heading
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", ours, re.MULTILINE)
    documented = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    registered = {
        collector._name + ("_total" if collector._type == "counter" else ""): (
            collector._type,
            collector._labelnames,
        )
        for collector in Metrics().registry._collector_to_names
        if isinstance(collector, MetricWrapperBase)
    } | {
        collector.name: ("histogram", ())
        for collector in Metrics().registry._collector_to_names
        if isinstance(collector, Durations)
    }
    assert registered == documented


def _walked(metrics: Metrics, proxies: int) -> int:
    """Update every metric as a mesh of `proxies` proxies would, and return the number of series."""
    for number in range(proxies):
        metrics.stream_opened("delta")
        metrics.stream_refused("revoked")
        metrics.handshakes_failed("no-tls", number + 1)
        metrics.connection_ended("idle-too-long")
        metrics.exceeded("names")
        metrics.large(CLUSTER)
        metrics.sent(CLUSTER, number, number)
        metrics.acked(f"type.googleapis.com/thing.of.proxy.Number{number}")
        metrics.nacked(f"type.googleapis.com/thing.of.proxy.Number{number}")
        metrics.pushed(number)
        metrics.acknowledged(number)
        metrics.event("directory", "Workload")
        metrics.wave(number, published=True)
        metrics.wave_work(computed=number, reused=number, stopped=number, encoded=number, touched=number)
        metrics.issued("proxy", "built-in")
        metrics.spans_exported(number)
        metrics.spans_dropped("rejected", number)
        metrics.renewed("vault", number)
        metrics.not_issued("vault", "issuer", number)
        metrics.reported("event")
        metrics.reported("status", "forbidden")
        metrics.reporting(leads=True)
        metrics.reviewed("allowed")
        metrics.injection("injected", "policy", 0.001)
        metrics.injection_configuration(taken=True)
        metrics.enrolled("Join", "ok")
    one = {"word": proxies}
    metrics.expires({"service": proxies})
    metrics.measured(
        Gauges(
            streams=one,
            proxies=one,
            resources=one,
            withheld=one,
            problems=one,
            source_age=one,
            source_event_age=one,
            source_failing={"word": True},
            source_held=one,
            source_objects={("word", "good"): proxies},
        )
    )
    now = datetime(2026, 1, 2, tzinfo=UTC)
    metrics.watched([Watch("pods", "", now, now, now, proxies, proxies, {"gone": proxies})], now)
    for collector, names in metrics.registry._collector_to_names.items():
        assert not names or any(family.samples for family in collector.collect()), collector
    return sum(len(family.samples) for family in metrics.registry.collect())


class _ByProxy(Metrics):
    """Metrics with an error: a label whose value depends on the proxy."""

    def __init__(self) -> None:
        super().__init__()
        self._bad = Counter("bad", "By proxy.", ["proxy"], registry=self.registry)

    def sent(self, type_url: str, resources: int, size: int) -> None:
        """Count the response by proxy."""
        super().sent(type_url, resources, size)
        self._bad.labels(f"proxy-{resources}").inc()


def test_number_of_series_does_not_grow_with_proxies() -> None:
    """All collectors have as many series for 40 proxies as for 3.

    A metric with a label by proxy is the negative control.
    """
    assert _walked(Metrics(), 40) == _walked(Metrics(), 3)
    assert _walked(_ByProxy(), 40) > _walked(_ByProxy(), 3)


def test_two_registries_in_one_process_are_independent() -> None:
    """Each server of a process has its own registry."""
    one, other = Metrics(), Metrics()
    one.handshake()
    assert _samples(other)[("meshwright_xds_handshakes_total", "")] == 0
