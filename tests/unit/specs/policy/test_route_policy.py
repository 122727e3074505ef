"""Tests of RoutePolicy: values that are read, and problems of invalid ones."""

from datetime import timedelta

import pytest

from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.policies.routing import Abort, Delay, HeaderChanges, RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, Rule
from meshwright.mesh.service import ServiceKey
from tests.meshes.reading import complaints, reading, value

WEB = ServiceKey(Namespace("shop"), ServiceName("web"))
SECOND = RouteActions(timedelta(seconds=1))


def manifest(rules: str, service: str = "web", metadata: str = "") -> str:
    """Return a RoutePolicy in namespace shop."""
    head = "apiVersion: policy.meshwright.dev/v1alpha1\nkind: RoutePolicy\n"
    named = f"{head}metadata: {{name: p, namespace: shop{metadata}}}\n"
    return f"{named}spec:\n  service: {service}\n  rules: {rules}\n"


def headers(request: str) -> str:
    """Return a RoutePolicy with a rule that changes request headers."""
    return manifest(f"[{{headers: {{request: {{{request}}}}}}}]")


def fault(text: str) -> str:
    """Return a RoutePolicy with a rule that injects faults."""
    return manifest(f"[{{fault: {{{text}}}}}]")


def test_header_changes_and_faults_are_read() -> None:
    """Header names are sorted in lower case, and values are unchanged."""
    text = manifest(
        "[{headers: {request: {set: [{name: X-B, value: ' 50% '}, {name: x-a, value: b}],"
        " add: [{name: C, value: d}], remove: [E]}, response: {remove: [server]}},"
        " fault: {delay: {percent: 0.0001, duration: 1ms}, abort: {percent: 100, status: 200}}}]"
    )
    ((_, result),) = reading(text).objects
    assert isinstance(result, RoutePolicy)
    assert result.rules[0].actions == RouteActions(
        request_headers=HeaderChanges((("x-a", "b"), ("x-b", " 50% ")), (("c", "d"),), ("e",)),
        response_headers=HeaderChanges(remove=("server",)),
        delay=Delay(0.0001, timedelta(milliseconds=1)),
        abort=Abort(100, 200),
    )


def test_route_policy_with_all_fields_is_read() -> None:
    """The rules keep their order."""
    text = manifest(
        "[{matches: [{apiGroup: specs.smi-spec.io/v1alpha4, kind: HTTPRouteGroup, name: g, matches: [b, a]}],"
        " timeout: {request: 1s}}, {timeout: {request: 1h}}]",
        metadata=', creationTimestamp: "2026-01-01T00:00:00Z"',
    )
    rules = (
        RouteRule((Rule(RouteKind.HTTP, "g", ("a", "b")),), SECOND),
        RouteRule((), RouteActions(timedelta(hours=1))),
    )
    key = PolicyKey(Namespace("shop"), "p")
    assert value(text) == RoutePolicy(key, WEB, rules, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize("service", ["web", "web.shop", "web.shop.svc", "web.shop.svc.cluster.local"])
def test_service_of_a_route_policy_may_have_any_of_its_names(service: str) -> None:
    """The service is in the object's own namespace."""
    result = value(manifest("[{timeout: {request: 1s}}]", service))
    assert result == RoutePolicy(PolicyKey(Namespace("shop"), "p"), WEB, (RouteRule((), SECOND),))


@pytest.mark.parametrize(
    ("text", "field", "code"),
    [
        (manifest("[{timeout: {request: 1s}}]", "web.bank"), "spec.service", "MW1016"),
        (manifest("[{timeout: {request: 1s}}]", "''"), "spec.service", "MW1013"),
        (manifest("[]"), "spec.rules", "MW1017"),
        (manifest("[{timeout: {request: 0s}}]"), "spec.rules[0].timeout.request", "MW1013"),
        (manifest("[{timeout: {request: 2h}}]"), "spec.rules[0].timeout.request", "MW1013"),
        (manifest("[{timeout: {request: 5}}]"), "spec.rules[0].timeout.request", "MW1010"),
        (manifest("[{timeout: {requests: 5s}}]"), "spec.rules[0].timeout.requests", "MW1012"),
        (manifest("[{matches: [], timeout: {request: 1s}}]"), "spec.rules[0].matches", "MW1017"),
        (manifest("[{matches: [{name: g}]}]"), "spec.rules[0].matches[0].kind", "MW1011"),
        (manifest("[{matches: [{kind: TCPRoute, name: g}]}]"), "spec.rules[0].matches[0].kind", "MW1013"),
        (manifest("[{matches: [{kind: HTTPRouteGroup}]}]"), "spec.rules[0].matches[0].name", "MW1011"),
        (manifest("[{}]"), "spec.rules[0]", "MW1017"),
        (headers("set: [{name: Host, value: a}]"), "spec.rules[0].headers.request.set[0].name", "MW1013"),
        (
            headers("add: [{name: x-envoy-a, value: a}]"),
            "spec.rules[0].headers.request.add[0].name",
            "MW1013",
        ),
        (headers("set: [{name: ':path', value: a}]"), "spec.rules[0].headers.request.set[0].name", "MW1013"),
        (headers("set: [{name: a}]"), "spec.rules[0].headers.request.set[0].value", "MW1011"),
        (headers("set: [{name: a, value: ''}]"), "spec.rules[0].headers.request.set[0].value", "MW1013"),
        (headers('set: [{name: a, value: "b\\n"}]'), "spec.rules[0].headers.request.set[0].value", "MW1013"),
        (headers("set: [{name: a, value: ü}]"), "spec.rules[0].headers.request.set[0].value", "MW1013"),
        (headers("remove: [Content-Length]"), "spec.rules[0].headers.request.remove[0]", "MW1013"),
        (headers("set: [{name: a, value: b}], remove: [A]"), "spec.rules[0].headers.request", "MW1015"),
        (fault("delay: {percent: 1}"), "spec.rules[0].fault.delay.duration", "MW1011"),
        (fault("delay: {duration: 1s}"), "spec.rules[0].fault.delay.percent", "MW1011"),
        (fault("abort: {percent: 101, status: 503}"), "spec.rules[0].fault.abort.percent", "MW1013"),
        (fault("abort: {percent: .nan, status: 503}"), "spec.rules[0].fault.abort.percent", "MW1013"),
        (fault("abort: {percent: 0.00001, status: 503}"), "spec.rules[0].fault.abort.percent", "MW1013"),
        (fault("abort: {percent: '5', status: 503}"), "spec.rules[0].fault.abort.percent", "MW1010"),
        (fault("abort: {percent: true, status: 503}"), "spec.rules[0].fault.abort.percent", "MW1010"),
        (manifest("[{mirror: {percent: 5}}]"), "spec.rules[0].mirror.service", "MW1011"),
        (manifest("[{mirror: {service: a.b, percent: 5}}]"), "spec.rules[0].mirror.service", "MW1016"),
        (manifest("[{mirror: {service: a}}]"), "spec.rules[0].mirror.percent", "MW1011"),
        (fault("abort: {percent: 5}"), "spec.rules[0].fault.abort.status", "MW1011"),
        (fault("abort: {percent: 5, status: 199}"), "spec.rules[0].fault.abort.status", "MW1013"),
        (fault("abort: {percent: 5, status: 600}"), "spec.rules[0].fault.abort.status", "MW1013"),
    ],
)
def test_invalid_route_policy_is_reported_with_its_field(text: str, field: str, code: str) -> None:
    """There is exactly one problem for each case."""
    assert [complaint[1:3] for complaint in complaints(text)] == [(code, field)]
