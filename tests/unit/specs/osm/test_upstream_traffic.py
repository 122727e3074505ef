"""Tests of OSM's UpstreamTrafficSetting: published manifests are read, and values Envoy refuses are not."""

from datetime import timedelta

import pytest

from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    RouteRate,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.values.rates import STATUSES
from protos.envoy.type.v3 import http_status_pb2
from tests.meshes.reading import complaints, reading, value

HOST = "host: web.shop.svc.cluster.local"


def setting(spec: str) -> str:
    """Return a manifest with the spec."""
    return f"""
apiVersion: policy.openservicemesh.io/v1alpha1
kind: UpstreamTrafficSetting
metadata: {{name: web, namespace: shop}}
spec:
  {spec}
"""


EVERYTHING = f"""{HOST}
  connectionSettings:
    tcp: {{maxConnections: 1, connectTimeout: 5s}}
    http: {{maxRequests: 2, maxRequestsPerConnection: 3, maxPendingRequests: 4, maxRetries: 0}}
  rateLimit:
    local:
      tcp: {{connections: 5, unit: second, burst: 6}}
      http:
        requests: 7
        unit: minute
        responseStatusCode: 503
        responseHeadersToAdd: [{{name: My-Limit, value: "7 %"}}]
  httpRoutes:
  - path: /get
    rateLimit: {{local: {{requests: 8, unit: hour, burst: 9}}}}
  - path: /free"""


def test_upstream_traffic_setting_with_all_fields_is_read() -> None:
    """A route without a limit is left out."""
    assert value(setting(EVERYTHING)) == UpstreamTrafficSetting(
        PolicyKey(Namespace("shop"), "web"),
        "web.shop.svc.cluster.local",
        ConnectionLimits(1, 4, 2, 3, 0, timedelta(seconds=5)),
        RateLimits(
            RateLimit(5, RateUnit.SECOND, 6),
            RateLimit(7, RateUnit.MINUTE, 0, 503, (("My-Limit", "7 %"),)),
            (RouteRate("/get", RateLimit(8, RateUnit.HOUR, 9)),),
        ),
    )


@pytest.mark.parametrize("host", ["httpbin.org", "Web.Shop", "10.0.0.1", "fd00::1"])
def test_host_may_be_a_dotted_name_or_an_address(host: str) -> None:
    """Names may have any case."""
    (result,) = reading(setting(f'host: "{host}"')).objects
    assert result[1] == UpstreamTrafficSetting(PolicyKey(Namespace("shop"), "web"), host.lower())


LOCAL = f"{HOST}\n  rateLimit: {{local: {{http: {{%s}}}}}}"
TCP = f"{HOST}\n  rateLimit: {{local: {{tcp: {{%s}}}}}}"
AT_ONCE = f"{HOST}\n  connectionSettings: {{%s}}"
ROUTE = f"{HOST}\n  httpRoutes: [%s]"
HTTP = "spec.rateLimit.local.http"
HEADERS = f"{HTTP}.responseHeadersToAdd"
RATE = "requests: 1, unit: second"


@pytest.mark.parametrize(
    ("spec", "code", "field"),
    [
        ("rateLimit: {}", "MW1011", "spec.host"),
        ("host: web", "MW1013", "spec.host"),
        ("host: '*.example.com'", "MW1013", "spec.host"),
        ("host: web.shop:80", "MW1013", "spec.host"),
        (AT_ONCE % "tcp: {maxConnections: -1}", "MW1013", "spec.connectionSettings.tcp.maxConnections"),
        (AT_ONCE % "http: {maxRetries: '1'}", "MW1010", "spec.connectionSettings.http.maxRetries"),
        (AT_ONCE % "http: {maxRequests: 4294967296}", "MW1013", "spec.connectionSettings.http.maxRequests"),
        (AT_ONCE % "http: {maxConnections: 1}", "MW1012", "spec.connectionSettings.http.maxConnections"),
        (AT_ONCE % "tcp: {connectTimeout: 0s}", "MW1013", "spec.connectionSettings.tcp.connectTimeout"),
        (AT_ONCE % "tcp: {connectTimeout: 5}", "MW1010", "spec.connectionSettings.tcp.connectTimeout"),
        (TCP % "unit: second", "MW1011", "spec.rateLimit.local.tcp.connections"),
        (TCP % "connections: 1", "MW1011", "spec.rateLimit.local.tcp.unit"),
        (TCP % f"{RATE}", "MW1012", "spec.rateLimit.local.tcp.requests"),
        (LOCAL % "requests: 0, unit: second", "MW1013", f"{HTTP}.requests"),
        (LOCAL % "requests: 1, unit: day", "MW1013", f"{HTTP}.unit"),
        (LOCAL % f"{RATE}, burst: -1", "MW1013", f"{HTTP}.burst"),
        (LOCAL % f"{RATE}, burst: 4294967295", "MW1013", f"{HTTP}.burst"),
        (LOCAL % f"{RATE}, responseStatusCode: 200", "MW1013", f"{HTTP}.responseStatusCode"),
        (LOCAL % f"{RATE}, responseStatusCode: 499", "MW1013", f"{HTTP}.responseStatusCode"),
        (
            LOCAL % f"{RATE}, responseHeadersToAdd: [{{name: ':status', value: a}}]",
            "MW1013",
            f"{HEADERS}[0].name",
        ),
        (LOCAL % f"{RATE}, responseHeadersToAdd: [{{name: Host, value: a}}]", "MW1013", f"{HEADERS}[0].name"),
        (
            LOCAL % f'{RATE}, responseHeadersToAdd: [{{name: a, value: "b\\nc: d"}}]',
            "MW1013",
            f"{HEADERS}[0].value",
        ),
        (LOCAL % f"{RATE}, responseHeadersToAdd: [{{name: a}}]", "MW1011", f"{HEADERS}[0].value"),
        (
            LOCAL % f"{RATE}, responseHeadersToAdd: [{{name: a, value: b}}, {{name: A, value: c}}]",
            "MW1015",
            f"{HEADERS}[1].name",
        ),
        (ROUTE % "{rateLimit: {}}", "MW1011", "spec.httpRoutes[0].path"),
        (ROUTE % "{path: '/('}", "MW1014", "spec.httpRoutes[0].path"),
        (ROUTE % "{path: /a}, {path: /a}", "MW1015", "spec.httpRoutes[1].path"),
        (ROUTE % f"{{path: /a, rateLimit: {{{RATE}}}}}", "MW1012", "spec.httpRoutes[0].rateLimit.requests"),
    ],
)
def test_invalid_upstream_traffic_setting_is_refused_with_its_field(spec: str, code: str, field: str) -> None:
    """No object is in force."""
    result = complaints(setting(spec))
    assert ("error", code, field) in [item[:3] for item in result]
    assert reading(setting(spec)).objects == ()


def test_more_than_ten_response_headers_are_refused() -> None:
    """Envoy accepts at most ten."""
    many = ", ".join(f"{{name: x{number}, value: y}}" for number in range(11))
    result = complaints(setting(LOCAL % f"{RATE}, responseHeadersToAdd: [{many}]"))
    assert [item[:3] for item in result] == [("error", "MW1013", HEADERS)]
    assert complaints(setting(LOCAL % f"{RATE}, responseHeadersToAdd: [{many.rpartition(', {')[0]}]")) == []


def test_response_statuses_are_those_of_envoy() -> None:
    """Envoy refuses the whole resource for any other status."""
    known = {number for number in http_status_pb2.StatusCode.values() if 400 <= number <= 599}
    assert known == STATUSES
