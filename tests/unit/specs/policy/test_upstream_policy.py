"""Tests of UpstreamPolicy: values that are read, and problems of invalid ones."""

from datetime import timedelta

import pytest

from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.policies.resilience import OutlierDetection
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HashKey,
    HealthCheck,
    KeyKind,
    LoadBalancing,
    LocalityPreference,
    LocalityScope,
    OutlierDetectionOverride,
    UpstreamPolicy,
)
from meshwright.mesh.service import ServiceKey
from tests.meshes.reading import complaints, reading, value

WEB = ServiceKey(Namespace("shop"), ServiceName("web"))


def manifest(fields: str, service: str = "web") -> str:
    """Return an UpstreamPolicy in namespace shop."""
    head = "apiVersion: policy.meshwright.dev/v1alpha1\nkind: UpstreamPolicy\n"
    return f"{head}metadata: {{name: p, namespace: shop}}\nspec: {{service: {service}, {fields}}}\n"


def outliers(text: str) -> str:
    """Return an UpstreamPolicy with outlier detection."""
    return manifest(f"outlierDetection: {{{text}}}")


def asked(text: str) -> str:
    """Return an UpstreamPolicy with a health check."""
    return manifest(f"healthCheck: {{{text}}}")


def hashed(key: str) -> str:
    """Return an UpstreamPolicy with a consistent hash."""
    return manifest(f"loadBalancing: {{policy: ConsistentHash, hash: {key}}}")


def test_outlier_detection_and_load_balancing_are_read() -> None:
    """The manifest has every field of both."""
    text = manifest(
        "outlierDetection: {consecutiveFailures: 3, consecutiveServerErrors: 4, baseEjectionTime: 1m,"
        " maxEjectionPercent: 100}, loadBalancing: {policy: ConsistentHash, hash: {header: X-User}}"
    )
    load = LoadBalancing(BalancingAlgorithm.CONSISTENT_HASH, HashKey(KeyKind.HEADER, "x-user"))
    ejecting = OutlierDetectionOverride(3, 4, timedelta(minutes=1), 100)
    assert value(text) == UpstreamPolicy(PolicyKey(Namespace("shop"), "p"), WEB, ejecting, load)


_STATUSES = "spec.healthCheck.http.expectedStatuses[0]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grpc: {}", HealthCheck(None, grpc="")),
        ("grpc: {service: shop.v1.Cart}", HealthCheck(None, grpc="shop.v1.Cart")),
        (
            "http: {path: /, expectedStatuses: ['404', 200-299, '404']}",
            HealthCheck("/", well=((200, 299), (404, 404))),
        ),
        ("tcp: {}", HealthCheck(None, timedelta(seconds=10), timedelta(seconds=1), 1, 3)),
        (
            "http: {path: '/w?a'}, interval: 1h, timeout: 10ms, healthyThreshold: 100, unhealthyThreshold: 2",
            HealthCheck("/w?a", timedelta(hours=1), timedelta(milliseconds=10), 100, 2),
        ),
    ],
)
def test_health_check_is_read_with_its_defaults(text: str, expected: HealthCheck) -> None:
    """The cases cover HTTP, gRPC and TCP."""
    result = value(asked(text))
    assert isinstance(result, UpstreamPolicy)
    assert result.checking == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", LocalityPreference(LocalityScope.ZONE)),
        ("{prefer: Region, failover: false}", LocalityPreference(LocalityScope.REGION, fails_over=False)),
    ],
)
def test_locality_preference_is_read_with_its_defaults(text: str, expected: LocalityPreference) -> None:
    """The default is the zone, with failover."""
    result = value(manifest(f"locality: {text}"))
    assert isinstance(result, UpstreamPolicy)
    assert result.nearest == expected


@pytest.mark.parametrize("policy", BalancingAlgorithm)
def test_each_load_balancing_algorithm_is_read(policy: BalancingAlgorithm) -> None:
    """Only a consistent hash has a key."""
    key = ", hash: {query: q}" if policy is BalancingAlgorithm.CONSISTENT_HASH else ""
    result = value(manifest(f"loadBalancing: {{policy: {policy}{key}}}"))
    assert isinstance(result, UpstreamPolicy)
    assert result.load.balancing is policy
    assert result.ejecting is None


@pytest.mark.parametrize(
    ("text", "ttl", "path"),
    [
        ("{name: s}", None, ""),
        ("{name: s, ttl: 0s}", timedelta(0), ""),
        ("{name: s, ttl: 8760h, path: /a}", timedelta(days=365), "/a"),
    ],
)
def test_hash_cookie_is_read(text: str, ttl: timedelta | None, path: str) -> None:
    """Without a TTL the cookie is never set by the proxy; a TTL of 0 makes a session cookie."""
    ((_, result),) = reading(hashed(f"{{cookie: {text}}}")).objects
    assert isinstance(result, UpstreamPolicy)
    assert result.load.key == HashKey(KeyKind.COOKIE, "s", ttl, path)


@pytest.mark.parametrize(
    ("text", "field", "code"),
    [
        (manifest("", "web.bank"), "spec.service", "MW1016"),
        (manifest(""), "spec", "MW1017"),
        (outliers("consecutiveFailures: -1"), "spec.outlierDetection.consecutiveFailures", "MW1013"),
        (
            outliers("consecutiveServerErrors: 1001"),
            "spec.outlierDetection.consecutiveServerErrors",
            "MW1013",
        ),
        (outliers("baseEjectionTime: 999ms"), "spec.outlierDetection.baseEjectionTime", "MW1013"),
        (outliers("baseEjectionTime: 301s"), "spec.outlierDetection.baseEjectionTime", "MW1013"),
        (outliers("maxEjectionPercent: 0"), "spec.outlierDetection.maxEjectionPercent", "MW1013"),
        (outliers("interval: 1s"), "spec.outlierDetection.interval", "MW1012"),
        (manifest("loadBalancing: {policy: roundrobin}"), "spec.loadBalancing.policy", "MW1013"),
        (manifest("loadBalancing: {policy: ConsistentHash}"), "spec.loadBalancing.hash", "MW1013"),
        (manifest("loadBalancing: {policy: Random, hash: {query: q}}"), "spec.loadBalancing.hash", "MW1021"),
        (hashed("{}"), "spec.loadBalancing.hash", "MW1013"),
        (hashed("{header: a, query: b}"), "spec.loadBalancing.hash", "MW1013"),
        (hashed("{header: 'a b'}"), "spec.loadBalancing.hash.header", "MW1013"),
        (hashed("{header: ''}"), "spec.loadBalancing.hash.header", "MW1013"),
        (hashed("{query: 'a&b'}"), "spec.loadBalancing.hash.query", "MW1013"),
        (hashed("{cookie: {}}"), "spec.loadBalancing.hash.cookie.name", "MW1011"),
        (hashed("{cookie: {name: 'a;b'}}"), "spec.loadBalancing.hash.cookie.name", "MW1013"),
        (hashed("{cookie: {name: a, path: b}}"), "spec.loadBalancing.hash.cookie.path", "MW1013"),
        (hashed("{cookie: {name: a, ttl: 8761h}}"), "spec.loadBalancing.hash.cookie.ttl", "MW1013"),
        (asked("interval: 5s"), "spec.healthCheck", "MW1013"),
        (asked("tcp: {}, http: {path: /}"), "spec.healthCheck", "MW1013"),
        (asked("http: {}"), "spec.healthCheck.http.path", "MW1011"),
        (asked("http: {path: well}"), "spec.healthCheck.http.path", "MW1013"),
        (asked("http: {path: '/a b'}"), "spec.healthCheck.http.path", "MW1013"),
        (asked("http: {path: '/a#b'}"), "spec.healthCheck.http.path", "MW1013"),
        (asked("http: {path: '/', method: GET}"), "spec.healthCheck.http.method", "MW1012"),
        (asked("tcp: {}, grpc: {}"), "spec.healthCheck", "MW1013"),
        (asked("grpc: {service: 'a b'}"), "spec.healthCheck.grpc.service", "MW1013"),
        (asked("http: {path: /, expectedStatuses: [200]}"), _STATUSES, "MW1013"),
        (asked("http: {path: /, expectedStatuses: ['2xx']}"), _STATUSES, "MW1013"),
        (asked("http: {path: /, expectedStatuses: [299-200]}"), _STATUSES, "MW1013"),
        (asked("http: {path: /, expectedStatuses: ['600']}"), _STATUSES, "MW1013"),
        (manifest("locality: {prefer: zone}"), "spec.locality.prefer", "MW1013"),
        (manifest("locality: {preference: Zone}"), "spec.locality.preference", "MW1012"),
        (asked("tcp: {port: 80}"), "spec.healthCheck.tcp.port", "MW1012"),
        (asked("tcp: {}, interval: 999ms"), "spec.healthCheck.interval", "MW1013"),
        (asked("tcp: {}, timeout: 61s"), "spec.healthCheck.timeout", "MW1013"),
        (asked("tcp: {}, timeout: 0s"), "spec.healthCheck.timeout", "MW1013"),
        (asked("tcp: {}, healthyThreshold: 0"), "spec.healthCheck.healthyThreshold", "MW1013"),
        (asked("tcp: {}, unhealthyThreshold: 101"), "spec.healthCheck.unhealthyThreshold", "MW1013"),
    ],
)
def test_invalid_upstream_policy_is_reported_with_its_field(text: str, field: str, code: str) -> None:
    """There is exactly one problem for each case."""
    assert [complaint[1:3] for complaint in complaints(text)] == [(code, field)]


MESH = OutlierDetection(5, None, timedelta(seconds=10), 50)


@pytest.mark.parametrize(
    ("said", "mesh", "expected"),
    [
        (OutlierDetectionOverride(), MESH, MESH),
        (OutlierDetectionOverride(), None, OutlierDetection()),
        (OutlierDetectionOverride(failures=0), MESH, None),
        (OutlierDetectionOverride(failures=2), MESH, OutlierDetection(2, None, timedelta(seconds=10), 50)),
        (OutlierDetectionOverride(server_errors=3), MESH, OutlierDetection(5, 3, timedelta(seconds=10), 50)),
        (OutlierDetectionOverride(server_errors=0), OutlierDetection(5, 7), OutlierDetection(5, None)),
        (
            OutlierDetectionOverride(ejected_for=timedelta(seconds=1), most_percent=100),
            MESH,
            OutlierDetection(5, None, timedelta(seconds=1), 100),
        ),
    ],
)
def test_omitted_outlier_detection_fields_are_those_of_the_mesh(
    said: OutlierDetectionOverride, mesh: OutlierDetection | None, expected: OutlierDetection | None
) -> None:
    """They have Meshwright's defaults if the mesh has no outlier detection."""
    assert said.over(mesh) == expected
