"""Tests of ClientTrafficPolicy: values that are read, defaults, and problems of invalid ones."""

from datetime import timedelta

import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.client_traffic import (
    ClientHttp2,
    ClientRates,
    ClientSettings,
    ClientSlashes,
    ClientTarget,
    ClientTimeouts,
    ClientTrafficPolicy,
    PortSettings,
)
from meshwright.mesh.policies.limits import RateLimit, RateLimits, RateUnit, RouteRate
from meshwright.mesh.policies.rate_services import CountedRequests, RateLimitService, RemoteAddress
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes.reading import complaints, reading, value

PUBLIC = "{group: gateway.networking.k8s.io, kind: Gateway, name: public}"
LISTENER = "{group: gateway.networking.k8s.io, kind: Gateway, name: public, sectionName: https}"


def manifest(fields: str, targets: str = PUBLIC) -> str:
    """Return a ClientTrafficPolicy in namespace shop."""
    head = "apiVersion: policy.meshwright.dev/v1alpha1\nkind: ClientTrafficPolicy\n"
    return f"{head}metadata: {{name: p, namespace: shop}}\nspec:\n  targetRefs: [{targets}]\n  {fields}\n"


EVERYTHING = """connections: {max: 20, bufferSize: 64Ki}
  headers: {maxSize: 2000, maxCount: 200}
  timeouts: {idle: 10m, requestHeaders: 5s, request: 5m, streamIdle: 0s, handshake: 500ms}
  http2: {maxConcurrentStreams: 50, initialStreamWindowSize: 128Ki, initialConnectionWindowSize: 2Mi}
  path: {mergeSlashes: false, escapedSlashes: UnescapeAndRedirect}
  clientAddress: {trustedHops: 2, proxyProtocol: true}
  rateLimit:
    local: {tcp: {connections: 5, unit: second}, http: {requests: 7, unit: minute, burst: 1},
      perClient: {requests: 3, unit: hour, responseStatusCode: 503}}
    global: {http: {rateLimitService: {host: limiter.limits, port: 8081}, domain: edge,
      descriptors: [{entries: [{remoteAddress: {}}]}]}}
  httpRoutes: [{path: /dear/.*, rateLimit: {local: {requests: 1, unit: second}}}]"""


def test_all_fields_are_read() -> None:
    """Sizes are bytes, and a time of 0 is no limit."""
    counted = CountedRequests(
        RateLimitService(HostPort("limiter.limits", 8081), "edge"), ((RemoteAddress(),),)
    )
    limits = RateLimits(
        RateLimit(5, RateUnit.SECOND),
        RateLimit(7, RateUnit.MINUTE, 1),
        (RouteRate("/dear/.*", RateLimit(1, RateUnit.SECOND)),),
        counted_requests=counted,
    )
    seconds = [timedelta(seconds=number) for number in (600, 5, 300, 0, 0.5)]
    settings = ClientSettings(
        20,
        2000,
        200,
        ClientTimeouts(*seconds),
        ClientHttp2(50, 128 * 1024, 2 * 1024 * 1024),
        merge_slashes=False,
        slashes=ClientSlashes.REDIRECT,
        trusted_hops=2,
        rates=ClientRates(limits, RateLimit(3, RateUnit.HOUR, 0, 503)),
    )
    assert value(manifest(EVERYTHING, f"{PUBLIC}, {LISTENER}")) == ClientTrafficPolicy(
        PolicyKey(Namespace("shop"), "p"),
        (ClientTarget("public"), ClientTarget("public", "https")),
        settings,
        PortSettings(64 * 1024, proxy_protocol=True),
        ("connections", "headers", "timeouts", "http2", "path", "clientAddress", "rateLimit", "httpRoutes"),
    )


def test_missing_fields_have_the_defaults() -> None:
    """Only the number of hops differs from a listener without a policy."""
    assert value(manifest("clientAddress: {trustedHops: 1}")) == ClientTrafficPolicy(
        PolicyKey(Namespace("shop"), "p"),
        (ClientTarget("public"),),
        ClientSettings(trusted_hops=1),
        fields=("clientAddress",),
    )


def test_policy_without_settings_is_warned_of() -> None:
    """The defaults hold, as without it."""
    assert [item[:3] for item in complaints(manifest(""))] == [("warning", "MW1017", "spec")]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ("connections: {max: 0}", "spec.connections.max"),
        ("connections: {bufferSize: 1}", "spec.connections.bufferSize"),
        ("connections: {bufferSize: -1Ki}", "spec.connections.bufferSize"),
        ("headers: {maxSize: 9Mi}", "spec.headers.maxSize"),
        ("headers: {maxSize: true}", "spec.headers.maxSize"),
        ("headers: {maxCount: 10001}", "spec.headers.maxCount"),
        ("timeouts: {idle: 25h}", "spec.timeouts.idle"),
        ("timeouts: {handshake: 0s}", "spec.timeouts.handshake"),
        ("http2: {initialStreamWindowSize: 1Ki}", "spec.http2.initialStreamWindowSize"),
        ("path: {escapedSlashes: Unescape}", "spec.path.escapedSlashes"),
        ("path: {normalize: false}", "spec.path.normalize"),
        ("clientAddress: {trustedHops: -1}", "spec.clientAddress.trustedHops"),
        ("rateLimit: {local: {perClient: {unit: hour}}}", "spec.rateLimit.local.perClient.requests"),
        ("httpRoutes: [{path: '('}]", "spec.httpRoutes[0].path"),
        ("httpRoutes: [{path: /a}]", "spec.httpRoutes[0].rateLimit"),
        ("httpRoutes: [{path: /a, rateLimit: {}}]", "spec.httpRoutes[0].rateLimit.local"),
        (
            "httpRoutes: [{path: /a, rateLimit: {global: {descriptors: []}}}]",
            "spec.httpRoutes[0].rateLimit.global",
        ),
    ],
)
def test_invalid_field_is_refused_with_its_name(fields: str, field: str) -> None:
    """No object is in force."""
    assert field in [item[2] for item in complaints(manifest(fields)) if item[0] == "error"]
    assert reading(manifest(fields)).objects == ()


@pytest.mark.parametrize(
    ("targets", "field"),
    [
        ("", "spec.targetRefs"),
        (f"{PUBLIC}, {PUBLIC}", "spec.targetRefs[1].name"),
        ("{kind: Gateway, name: public}", "spec.targetRefs[0].group"),
        ("{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}", "spec.targetRefs[0].kind"),
        ("{group: gateway.networking.k8s.io, kind: Gateway}", "spec.targetRefs[0].name"),
        (
            "{group: gateway.networking.k8s.io, kind: Gateway, name: a, namespace: b}",
            "spec.targetRefs[0].namespace",
        ),
    ],
)
def test_invalid_target_is_refused(targets: str, field: str) -> None:
    """A target is a Gateway of the policy's own namespace, each once."""
    found = complaints(manifest("connections: {max: 1}", targets))
    assert [item[2] for item in found if item[0] == "error"] == [field]
