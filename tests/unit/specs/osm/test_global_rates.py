"""Tests of global rate limits in UpstreamTrafficSettings: values that are read, and refused fields."""

from datetime import timedelta

import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.limits import RateLimit, RateLimits, RateUnit, RouteRate, UpstreamTrafficSetting
from meshwright.mesh.policies.rate_services import (
    CountedConnections,
    CountedRequests,
    Exact,
    GenericKey,
    HeaderCriterion,
    HeaderPresence,
    HeaderValueMatch,
    Prefix,
    RateLimitService,
    Regex,
    RemoteAddress,
    RequestHeader,
    Substring,
    Suffix,
)
from tests.meshes.reading import complaints, reading, value
from tests.unit.specs.osm.test_upstream_traffic import HOST, setting

SERVICE = "rateLimitService: {host: limiter.limits, port: 8081}, domain: shop"
ASKED = RateLimitService(HostPort("limiter.limits", 8081), "shop")
WEB = "descriptors: [{entries: [{genericKey: {value: web}}]}]"
TCP_WEB = "descriptors: [{entries: [{key: a, value: b}]}]"
HTTP = "spec.rateLimit.global.http"
TCP = "spec.rateLimit.global.tcp"
ENTRY = f"{HTTP}.descriptors[0].entries[0]"
CRITERION = f"{ENTRY}.headerValueMatch.headers[0]"


def http(fields: str, more: str = "") -> str:
    """Return a setting with a global rate limit of requests."""
    return setting(f"{HOST}\n  rateLimit: {{global: {{http: {{{fields}}}}}}}\n{more}")


def tcp(fields: str) -> str:
    """Return a setting with a global rate limit of connections."""
    return setting(f"{HOST}\n  rateLimit: {{global: {{tcp: {{{fields}}}}}}}")


def entry(fields: str) -> str:
    """Return a setting with one entry of a descriptor."""
    return http(f"{SERVICE}, descriptors: [{{entries: [{{{fields}}}]}}]")


def rates(text: str) -> RateLimits:
    """Return the rate limits of a manifest without problems."""
    result = value(text)
    assert isinstance(result, UpstreamTrafficSetting)
    return result.rates


def test_global_limit_of_connections_is_read() -> None:
    """The manifest has all of OSM's fields."""
    fields = (
        f"{SERVICE}, timeout: 1s, failOpen: false, "
        "descriptors: [{entries: [{key: a, value: b}, {key: c, value: d}]}, {entries: [{key: e, value: f}]}]"
    )
    asked = RateLimitService(ASKED.server, "shop", timedelta(seconds=1), fails_open=False)
    messages = ((("a", "b"), ("c", "d")), (("e", "f"),))
    assert rates(tcp(fields)) == RateLimits(counted_connections=CountedConnections(asked, messages))


def test_global_limit_of_requests_is_read() -> None:
    """The manifest has every kind of entry and header criterion; the defaults are OSM's."""
    fields = f"""{SERVICE}, enableXRateLimitHeaders: true, responseStatusCode: 503, descriptors: [
      {{entries: [
        {{genericKey: {{key: service, value: web}}}}, {{genericKey: {{value: any}}}}, {{remoteAddress: {{}}}},
        {{requestHeader: {{name: X-Tenant, key: tenant}}}}]}},
      {{entries: [{{headerValueMatch: {{value: "yes", expectMatch: false, headers: [
        {{name: ":method", exact: GET}}, {{name: a, prefix: b}}, {{name: a, suffix: c}},
        {{name: a, contains: d}}, {{name: a, regex: "[0-9]+"}}, {{name: a, present: true}},
        {{name: a, present: false}}]}}}}]}}]"""
    criteria = (Exact("GET"), Prefix("b"), Suffix("c"), Substring("d"), Regex("[0-9]+"), HeaderPresence(True))
    headers = tuple(
        HeaderCriterion(":method" if isinstance(item, Exact) else "a", item)
        for item in (*criteria, HeaderPresence(False))
    )
    messages = (
        (
            GenericKey("service", "web"),
            GenericKey("generic_key", "any"),
            RemoteAddress(),
            RequestHeader("tenant", "x-tenant"),
        ),
        (HeaderValueMatch("header_match", "yes", headers, expected=False),),
    )
    counted = CountedRequests(ASKED, messages, 503, shows_limits=True)
    assert rates(http(fields)) == RateLimits(counted_requests=counted)
    assert ASKED.timeout == timedelta(milliseconds=20)
    assert ASKED.fails_open


def test_global_limit_of_a_route_is_read() -> None:
    """A route may have descriptors, a local limit, or both."""
    routes = """  httpRoutes:
  - {path: /a, rateLimit: {global: {descriptors: [{entries: [{remoteAddress: {}}]}]}}}
  - path: /b
    rateLimit:
      local: {requests: 1, unit: hour}
      global: {descriptors: [{entries: [{genericKey: {value: b}}]}]}
"""
    rate_limits = rates(http(f"{SERVICE}, {WEB}", routes))
    assert rate_limits.routes == (
        RouteRate("/a", None, ((RemoteAddress(),),)),
        RouteRate("/b", RateLimit(1, RateUnit.HOUR), ((GenericKey("generic_key", "b"),),)),
    )
    assert rate_limits.of_requests


def test_route_descriptors_without_a_rate_limit_service_are_a_warning() -> None:
    """OSM accepts this silently; the rest of the object is in force."""
    text = setting(
        f"{HOST}\n  httpRoutes: [{{path: /a, rateLimit: {{local: {{requests: 1, unit: hour}}, global: "
        "{descriptors: [{entries: [{remoteAddress: {}}]}]}}}]"
    )
    assert complaints(text) == [
        ("warning", "MW1030", "spec.httpRoutes[0].rateLimit.global", "a mapping of 1 key")
    ]
    ((_, result),) = reading(text).objects
    assert isinstance(result, UpstreamTrafficSetting)
    assert result.rates == RateLimits(routes=(RouteRate("/a", RateLimit(1, RateUnit.HOUR)),))


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        (http(WEB + ", domain: a"), "MW1011", f"{HTTP}.rateLimitService"),
        (http(f"rateLimitService: {{port: 1}}, domain: a, {WEB}"), "MW1011", f"{HTTP}.rateLimitService.host"),
        (http(f"rateLimitService: {{host: a}}, domain: a, {WEB}"), "MW1011", f"{HTTP}.rateLimitService.port"),
        (
            http(f"rateLimitService: {{host: 'a b', port: 1}}, domain: a, {WEB}"),
            "MW1013",
            f"{HTTP}.rateLimitService.host",
        ),
        (http(f"rateLimitService: {{host: a, port: 1}}, {WEB}"), "MW1011", f"{HTTP}.domain"),
        (http(f"{SERVICE}"), "MW1011", f"{HTTP}.descriptors"),
        (http(f"{SERVICE}, descriptors: []"), "MW1013", f"{HTTP}.descriptors"),
        (http(f"{SERVICE}, descriptors: [{{}}]"), "MW1011", f"{HTTP}.descriptors[0].entries"),
        (http(f"{SERVICE}, descriptors: [{{entries: []}}]"), "MW1013", f"{HTTP}.descriptors[0].entries"),
        (http(f"{SERVICE}, timeout: 0s, {WEB}"), "MW1013", f"{HTTP}.timeout"),
        (http(f"{SERVICE}, responseStatusCode: 499, {WEB}"), "MW1013", f"{HTTP}.responseStatusCode"),
        (http(f"{SERVICE}, failureModeDeny: true, {WEB}"), "MW1012", f"{HTTP}.failureModeDeny"),
        (entry(""), "MW1013", ENTRY),
        (entry("remoteAddress: {}, genericKey: {value: a}"), "MW1013", ENTRY),
        (entry("genericKey: {}"), "MW1011", f"{ENTRY}.genericKey.value"),
        (entry("genericKey: {value: ''}"), "MW1013", f"{ENTRY}.genericKey.value"),
        (entry("genericKey: {value: 1}"), "MW1010", f"{ENTRY}.genericKey.value"),
        (entry('genericKey: {value: "a\\nb"}'), "MW1013", f"{ENTRY}.genericKey.value"),
        (entry("requestHeader: {name: a}"), "MW1011", f"{ENTRY}.requestHeader.key"),
        (entry("requestHeader: {name: 'a b', key: c}"), "MW1013", f"{ENTRY}.requestHeader.name"),
        (entry("requestHeader: {name: ':scheme', key: c}"), "MW1013", f"{ENTRY}.requestHeader.name"),
        (entry("headerValueMatch: {value: a}"), "MW1011", f"{ENTRY}.headerValueMatch.headers"),
        (entry("headerValueMatch: {value: a, headers: [{name: b}]}"), "MW1013", CRITERION),
        (
            entry("headerValueMatch: {value: a, headers: [{name: b, exact: c, present: true}]}"),
            "MW1013",
            CRITERION,
        ),
        (
            entry("headerValueMatch: {value: a, headers: [{name: b, regex: '('}]}"),
            "MW1014",
            f"{CRITERION}.regex",
        ),
        (tcp(f"{SERVICE}, {WEB}"), "MW1011", f"{TCP}.descriptors[0].entries[0].key"),
        (tcp(f"{SERVICE}, {TCP_WEB}, responseStatusCode: 429"), "MW1012", f"{TCP}.responseStatusCode"),
    ],
)
def test_invalid_global_rate_limit_is_refused_with_its_field(text: str, code: str, field: str) -> None:
    """No part of the object is in force."""
    assert ("error", code, field) in [complaint[:3] for complaint in complaints(text)]
    assert reading(text).objects == ()
