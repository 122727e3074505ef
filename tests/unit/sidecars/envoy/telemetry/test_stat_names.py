"""What the translation names is found again in Envoy's statistics."""

import pytest

from catalog.policy.values.outbound import WeightedBackend
from catalog.policy.values.outside import OutsideRange
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import ExternalHost, ServiceKey
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.telemetry.stat_names import StatTarget, backend, called, received_at

SHOP = ServiceKey(Namespace("default"), ServiceName("shop"))


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("rds-outbound.default/shop|80", StatTarget("default", "shop", "80")),
        ("outbound.default/db|5432", StatTarget("default", "db", "5432")),
        ("rds-outbound.books.example.org|80", StatTarget("", "books.example.org", "80")),
        ("outbound.2001_db8__7|443", StatTarget("", "2001:db8::7", "443")),
        ("outbound.10.0.0.7|443", StatTarget("", "10.0.0.7", "443")),
        (names.outside_routes(Port(80), OutsideRange()), StatTarget("", "passthrough-outbound", "80")),
        ("rds-egress.80|10.0.0.0/8", StatTarget("", "passthrough-outbound", "80")),
        ("egress.443", StatTarget("", "passthrough-outbound", "443")),
        ("egress", StatTarget("", "passthrough-outbound", "")),
        ("closed", StatTarget("", "blackhole-outbound", "")),
        ("loop", StatTarget("", "blackhole-outbound", "")),
        *(
            (prefix, None)
            for prefix in (names.inbound_routes(Port(8080)), "inbound.9090", "admin", "egressx")
        ),
    ],
)
def test_what_a_prefix_is_for(prefix: str, expected: StatTarget | None) -> None:
    """By the names that connection managers and TCP proxies have, which goldens show."""
    assert called(prefix) == expected


@pytest.mark.parametrize(
    ("prefix", "port"),
    [(names.inbound_routes(Port(8080)), "8080"), ("inbound.9090", "9090"), ("outbound.a/b|80", None)],
)
def test_at_which_port_calls_come_in(prefix: str, port: str | None) -> None:
    """Of HTTP and of TCP."""
    assert received_at(prefix) == port


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (names.cluster(WeightedBackend(SHOP, "8080", 100)), StatTarget("default", "shop", "8080")),
        (names.cluster(WeightedBackend(SHOP, "main", 100)), StatTarget("default", "shop", "main")),
        ("default/shop|8080|as-called", StatTarget("default", "shop", "8080")),
        (
            names.cluster(WeightedBackend(ExternalHost("books.example.org"), "80", 1)),
            StatTarget("", "books.example.org", "80"),
        ),
        (
            names.cluster(WeightedBackend(ExternalHost("2001:db8::7"), "80", 1)),
            StatTarget("", "2001:db8::7", "80"),
        ),
        (names.local_cluster(SHOP, Port(8080)), None),
        *((name, None) for name in (names.AUTHORIZER_CLUSTER, names.TRACING_CLUSTER, "meshwright-ads")),
        ("envoy-rate-limit-cluster|limiter.limits:8081", None),
    ],
)
def test_which_backend_a_cluster_is(cluster: str, expected: StatTarget | None) -> None:
    """In statistics Envoy writes an underscore for each colon."""
    assert backend(cluster.replace(":", "_")) == expected
