"""Tests of Envoy's statistic names: each gives the service or port of its configuration."""

import pytest

from catalog.policy.values.edge import EdgeChain, EdgeTls
from catalog.policy.values.outside import OutsideRange
from catalog.policy.values.route_actions import WeightedBackend
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import ExternalHost, ServiceKey
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.telemetry.stat_names import StatTarget, backend, called, received_at, route


def _chain(server_name: str) -> EdgeChain:
    return EdgeChain(EdgeTls(server_name))


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
        (
            names.edge_routes(Port(443), _chain("*.shop.example")),
            StatTarget("", "listener *.shop.example", "443"),
        ),
        (names.edge_routes(Port(443), _chain("")), StatTarget("", "listener *", "443")),
        (names.edge_routes(Port(80), EdgeChain()), StatTarget("", "listener *", "80")),
        (names.edge_connections(Port(443), _chain("a.example")), StatTarget("", "listener a.example", "443")),
        (names.edge_connections(Port(5432), EdgeChain()), StatTarget("", "listener *", "5432")),
        ("closed", StatTarget("", "blackhole-outbound", "")),
        ("loop", StatTarget("", "blackhole-outbound", "")),
        *(
            (prefix, None)
            for prefix in (names.inbound_routes(Port(8080)), "inbound.9090", "admin", "egressx")
        ),
    ],
)
def test_stat_prefix_gives_the_called_service(prefix: str, expected: StatTarget | None) -> None:
    """The prefixes are those of connection managers and TCP proxies, as in the golden files."""
    assert called(prefix) == expected


@pytest.mark.parametrize(
    ("prefix", "port"),
    [(names.inbound_routes(Port(8080)), "8080"), ("inbound.9090", "9090"), ("outbound.a/b|80", None)],
)
def test_stat_prefix_gives_the_inbound_port(prefix: str, port: str | None) -> None:
    """This holds for HTTP and TCP; an outbound prefix has no inbound port."""
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
def test_cluster_name_gives_its_backend(cluster: str, expected: StatTarget | None) -> None:
    """Envoy writes an underscore for each colon in statistics."""
    assert backend(cluster.replace(":", "_")) == expected


@pytest.mark.parametrize(
    ("chain", "listener"),
    [(_chain("*.shop.example"), "*.shop.example"), (_chain(""), "*"), (EdgeChain(), "*")],
)
def test_route_of_a_gateway_is_counted_for_its_listener(chain: EdgeChain, listener: str) -> None:
    """The host name of the route can be more specific than the listener's, and is not shown."""
    prefix = f"{names.edge_host(chain, 'a.shop.example')}.route.{names.counted_route(Port(443), (), ())}"
    assert route(prefix) == (StatTarget("", f"listener {listener}", "443"), "rest")
