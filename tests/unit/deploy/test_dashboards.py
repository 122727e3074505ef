"""Tests of the queries in dashboards, rules and documents: metrics, labels and label values exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from meshwright.admin.metrics.registry import Metrics
from meshwright.admin.metrics.tallies import Durations
from meshwright.agent.statistics.edge_totals import WorkloadLabels
from meshwright.agent.statistics.edges import Edges
from meshwright.agent.statistics.exposition import written
from meshwright.agent.statistics.statistics import read
from meshwright.delivery.proxies.status import ProxyState
from tests.tools import libyaml
from tests.tools.promql import Series, Wrong, labels_of

ROOT: Final = Path(__file__).parents[3]
FILES: Final = ROOT / "deploy" / "chart" / "meshwright" / "files"
DASHBOARDS: Final = {
    file.name: json.loads(file.read_text("utf-8")) for file in FILES.glob("dashboard-*.json")
}
VALUES: Final = {("meshwright_proxies", "state"): frozenset(map(str, ProxyState))}
CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
ENDS: Final = ("http.rds-outbound.n/s|80", "http.rds-inbound.80", "tcp.outbound.n/db|1", "tcp.inbound.1")
UP: Final = ("cluster.n/s|80", "vhost.n/s.route.80|n/a", "vhost.n/s.vcluster.80|n/a")
COUNTED: Final = {
    **{
        f"{end}.downstream_cx_{what}": 1
        for end in ENDS
        for what in ("total", "rx_bytes_total", "tx_bytes_total")
    },
    **{f"{end}.downstream_rq_{class_}": 1 for end in ENDS[:2] for class_ in CLASSES},
    **{f"{of}.upstream_rq_{class_}": 1 for of in UP for class_ in CLASSES},
    **{
        f"cluster.n/s|80.upstream_{item}": 1
        for item in ("rq_retry", "cx_total", "cx_connect_fail", "cx_active")
    },
    **{f"cluster.n/s|80{local}.grpc.failure": 1 for local in ("", "|local")},
}
TIMED: Final = ("http.rds-outbound.n/s|80.downstream_rq_time", "http.rds-inbound.80.downstream_rq_time")
TIMED_UP: Final = tuple(f"{of}.upstream_rq_time" for of in UP)


def of_agents() -> Iterator[Series]:
    """Yield each series of an agent whose proxy has counted some of every kind, by sample."""
    bins = [{"lower_bound": 4.0, "width": 0.1, "count": 1}]
    details = [{"name": name, "totals": bins} for name in (*TIMED, *TIMED_UP)]
    numbers: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in COUNTED.items()]
    statistics = read({"stats": [*numbers, {"histograms": {"details": details}}]})
    families = Edges().families(statistics, WorkloadLabels("n", "a", "a"))
    assert [item.name for item in families if not item.samples] == []
    for family in text_string_to_metric_families(written(families)):
        for sample in family.samples:
            labels = {
                name: frozenset({value}) if name in CLOSED else None for name, value in sample.labels.items()
            }
            yield Series(sample.name, family.type != "gauge", labels)


CLOSED: Final = ("direction", "protocol", "status_class")
"""Labels of which there is no further value, whatever is called."""


def of_control_planes() -> Iterator[Series]:
    """Yield each declared series of a control plane."""
    for collector in Metrics().registry._collector_to_names:
        if isinstance(collector, Durations):
            yield from _parts(collector.name, "histogram", {})
        elif isinstance(collector, MetricWrapperBase):
            labels = {name: VALUES.get((collector._name, name)) for name in collector._labelnames}
            yield from _parts(collector._name, str(collector._type), labels)


def _parts(name: str, kind: str, labels: dict[str, frozenset[str] | None]) -> Iterator[Series]:
    match kind:
        case "histogram":
            yield Series(f"{name}_bucket", True, {**labels, "le": None})
            yield from (Series(f"{name}_{item}", True, labels) for item in ("sum", "count"))
        case "counter":
            yield Series(f"{name}_total", True, labels)
        case _:
            yield Series(name, False, labels)


def rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of a file."""
    groups = libyaml.load((ROOT / "deploy" / "prometheus" / name).read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def known() -> list[Series]:
    """Return all possible series: exposed ones, and those recorded by rules.

    A rule may use the series of an earlier rule.
    """
    result = [*of_agents(), *of_control_planes()]
    for rule in rules("recording.yaml"):
        result.append(Series(rule["record"], False, dict.fromkeys(labels_of(rule["expr"], result))))
    return result


def asked(dashboard: Any, known: list[Series]) -> int:
    """Compare a dashboard with the known series, and return the number of its queries. Raises Wrong."""
    variables = [item for item in dashboard["templating"]["list"] if item["type"] == "query"]
    for variable in variables:
        of, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
        _has(variable["query"], [label], labels_of(of, known))
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    named = {item["name"] for item in dashboard["templating"]["list"]}
    _has(str(dashboard["uid"]), re.findall(r"\$\{?(\w+)", json.dumps(dashboard)), frozenset(named))
    for item in targets:
        _has(item["expr"], re.findall(r"\{\{(\w+)\}\}", item["legendFormat"]), labels_of(item["expr"], known))
    return len(targets) + len(variables)


def _has(query: str, wanted: list[str], there: frozenset[str]) -> None:
    if missing := sorted(set(wanted) - there):
        raise Wrong(f"{missing} of {query}: there are {sorted(there)}")


@pytest.mark.parametrize("name", sorted(DASHBOARDS))
def test_dashboard_queries_existing_series(known: list[Series], name: str) -> None:
    """Metrics, labels, known label values, variables and the labels in legends all exist."""
    assert asked(DASHBOARDS[name], known) > 8


@pytest.mark.parametrize(
    ("name", "right", "misspelt"),
    [
        ("mesh", "sum by (destination_namespace", "sum by (destination_name"),
        ("mesh", "meshwright_edge_grpc_failed_total", "meshwright_edge_grpc_failure_total"),
        ("mesh", "{{backend_service}}", "{{service}}"),
        ("mesh", r"direction=\"outbound\"", r"direction=\"out\""),
        ("service", "sum by (route)", "sum by (routes)"),
        ("service", "{{status_class}}", "{{status}}"),
        ("service", r"destination_service=\"$service\"", r"destination_svc=\"$service\""),
        ("service", r"\"$namespace\"}, destination_service)", r"\"$namespace\"}, service)"),
        ("service", r"\"$namespace\"", r"\"$ns\""),
        ("service", "sum by (le) (rate", "sum (rate"),
        ("control-plane", "max by (severity)", "max by (level)"),
        (
            "control-plane",
            "sum by (state) (meshwright_proxies",
            "sum by (state) (rate(meshwright_proxies[5m])",
        ),
        ("control-plane", "meshwright_wave_seconds_bucket", "meshwright_wave_seconds"),
    ],
)
def test_misspelt_dashboard_query_is_found(known: list[Series], name: str, right: str, misspelt: str) -> None:
    """Prometheus would answer such a query with an empty result, or with an error that is easily missed."""
    text = (FILES / f"dashboard-{name}.json").read_text("utf-8")
    assert right in text
    with pytest.raises(Wrong):
        asked(json.loads(text.replace(right, misspelt)), known)


def test_alerts_query_existing_series_and_labels(known: list[Series]) -> None:
    """Every label in a summary is a label of the alert's expression. Wrong expressions are found."""
    for rule in rules("alerts.yaml"):
        labels = labels_of(rule["expr"], known)
        named = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
        _has(rule["alert"], named, labels)
    for expression in (
        'meshwright_proxies{state="away"} > 0',
        "meshwright_reporting_proxies < meshwright_proxies",
        "sum without (states) (meshwright_proxies)",
        "meshwright_certificates_runing_out > 0",
        "rate(meshwright_groups[5m])",
    ):
        with pytest.raises(Wrong):
            labels_of(expression, known)


def test_documented_queries_use_existing_series(known: list[Series]) -> None:
    """The queries of docs/operate/metrics.md and the rules of docs/start/kubernetes.md are checked."""
    page = (ROOT / "docs" / "operate" / "metrics.md").read_text("utf-8")
    (block,) = [item for item in re.findall(r"```\n(.+?)```", page, re.DOTALL) if "rate(" in item]
    queries = re.split(r"\n(?=\S)", block.strip())
    manual = (ROOT / "docs" / "start" / "kubernetes.md").read_text("utf-8")
    queries += re.findall(r"^ +expr: (.+)$", manual, re.MULTILINE)
    assert len(queries) == 4
    for query in queries:
        labels_of(query, known)
