"""Metrics are what Prometheus reads, and no label grows."""

from prometheus_client.parser import text_string_to_metric_families

from admin.metrics import Gauges, Metrics, short_type


def _samples(metrics: Metrics) -> dict[tuple[str, str], float]:
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.endswith(("_created", "_bucket", "_sum"))
    }


def test_counted_events_come_out_by_name_and_label() -> None:
    """Every counter moves, under a name of ours."""
    metrics = Metrics()
    metrics.stream_opened("delta")
    metrics.stream_refused("revoked")
    metrics.handshake()
    metrics.sent("type.googleapis.com/envoy.config.cluster.v3.Cluster", 3)
    metrics.acked("type.googleapis.com/envoy.config.listener.v3.Listener")
    metrics.nacked("type.googleapis.com/envoy.config.route.v3.RouteConfiguration")
    metrics.wave(0.1, published=True)
    metrics.group_failed()
    metrics.issued("proxy")
    found = {name: value for name, value in _samples(metrics).items() if value}
    assert found == {
        ("meshwright_xds_streams_opened_total", "delta"): 1,
        ("meshwright_xds_streams_refused_total", "revoked"): 1,
        ("meshwright_xds_handshakes_total", ""): 1,
        ("meshwright_xds_responses_total", "cluster"): 1,
        ("meshwright_xds_resources_sent_total", "cluster"): 3,
        ("meshwright_xds_acks_total", "listener"): 1,
        ("meshwright_xds_nacks_total", "route"): 1,
        ("meshwright_waves_total", "published"): 1,
        ("meshwright_wave_seconds_count", ""): 1,
        ("meshwright_group_failures_total", ""): 1,
        ("meshwright_certificates_issued_total", "proxy"): 1,
    }


def test_a_label_value_that_is_gone_leaves() -> None:
    """A source that was removed does not stay on the page with its last age."""
    metrics = Metrics()
    metrics.measured(Gauges(source_age={"directory": 1.0, "dns": 2.0}, proxies={"connected": 3}))
    metrics.measured(Gauges(source_age={"directory": 4.0}))
    found = {key: value for key, value in _samples(metrics).items() if key[1]}
    assert found == {("meshwright_source_age_seconds", "directory"): 4.0}


def test_the_types_are_a_closed_set() -> None:
    """A client cannot make a label by asking for a type of its own."""
    assert short_type("type.googleapis.com/evil.Thing") == "other"
    assert short_type("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment") == "endpoint"


def test_two_servers_in_one_process_do_not_share_numbers() -> None:
    """Each has a registry of its own."""
    one, other = Metrics(), Metrics()
    one.handshake()
    assert _samples(other)[("meshwright_xds_handshakes_total", "")] == 0
