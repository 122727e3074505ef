"""OSM's UpstreamTrafficSetting, policy.openservicemesh.io v1alpha1: limits of calls to a host.

Values have the bounds of OSM's schema and of Envoy, which rejects a whole resource for an unknown status or
more than ten headers.
"""

import ipaddress
from collections.abc import Iterator
from typing import Final

from meshwright.mesh.names import is_dns_subdomain
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    RouteRate,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.manifest import Manifest
from meshwright.specs.osm import global_rates
from meshwright.specs.osm.unenforced_policy import not_enforced
from meshwright.specs.quotes import never
from meshwright.specs.values.durations import wait
from meshwright.specs.values.headers import VALUE_RULE, is_name, is_value

MOST: Final = 2**32 - 1
"""Envoy's counters have 32 bits; for a rate, the sum of amount and burst must fit."""

MOST_HEADERS: Final = 10
UNITS: Final = tuple(RateUnit)
HOST_RULE: Final = (
    "must be the name of a service, for example web.shop.svc.cluster.local, or a host outside the "
    "mesh: a name of at least two DNS labels, or an IP address"
)
HEADER_RULE: Final = (
    "must be the name of a header, for example retry-after, and not host, which responses do not have"
)

_NOBODY_ASKED: Final = not_enforced(
    "spec.rateLimit.global.http is missing, which names the rate limit service"
)


def upstream_traffic_setting(manifest: Manifest) -> UpstreamTrafficSetting:
    """Read an UpstreamTrafficSetting."""
    fields = manifest.spec()
    host = _host(fields)
    connections = _connections(fields.section("connectionSettings"))
    rates = _rates(fields)
    fields.close()
    return UpstreamTrafficSetting(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        host=host,
        connections=connections,
        rates=rates,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _host(fields: Fields) -> str:
    host = fields.required_text("host", HOST_RULE).lower()
    if host and not _is_address(host) and ("." not in host or not is_dns_subdomain(host)):
        fields.wrong("host", HOST_RULE)
    return host


def _is_address(host: str) -> bool:
    try:
        # Only the canonical form, because the host is compared as text with the hosts of calls.
        return str(ipaddress.ip_address(host)) == host
    except ValueError:
        return False


def _connections(fields: Fields) -> ConnectionLimits:
    tcp, http = fields.section("tcp"), fields.section("http")
    limits = ConnectionLimits(
        connections=tcp.whole("maxConnections", 0, MOST),
        pending_requests=http.whole("maxPendingRequests", 0, MOST),
        requests=http.whole("maxRequests", 0, MOST),
        requests_per_connection=http.whole("maxRequestsPerConnection", 0, MOST),
        retries=http.whole("maxRetries", 0, MOST),
        connect_timeout=wait(tcp, "connectTimeout"),
    )
    for item in (tcp, http, fields):
        item.close()
    return limits


def _rates(fields: Fields) -> RateLimits:
    limits = fields.section("rateLimit")
    local, asking = limits.section("local"), limits.section("global")
    tcp, http = local.section("tcp"), local.section("http")
    all_tcp, all_http = asking.section("tcp"), asking.section("http")
    # An absent section reads as an empty one, in which the required amount would be missing.
    rate_limits = RateLimits(
        connections=_rate(tcp, "connections") if local.has("tcp") else None,
        requests=_request_rate(http) if local.has("http") else None,
        routes=tuple(_routes(fields, has_service=asking.has("http"))),
        counted_connections=global_rates.counted_connections(all_tcp) if asking.has("tcp") else None,
        counted_requests=global_rates.counted_requests(all_http) if asking.has("http") else None,
    )
    for item in (local, asking, limits):
        item.close()
    return rate_limits


def _routes(fields: Fields, *, has_service: bool) -> Iterator[RouteRate]:
    """Yield the routes with a limit; `has_service` is True if the object has a rate limit service."""
    sections = fields.sections("httpRoutes")
    paths = [
        item.required_text(
            "path", "must be a regular expression (RE2) for the path of requests, for example /api/.*"
        )
        for item in sections
    ]
    for index in duplicates(paths):
        sections[index].wrong("path", "must differ from the paths of the other routes", Code.DUPLICATE)
    for section, path in zip(sections, paths, strict=True):
        if path and (fault := section.notes.expressions.fault(path)):
            section.wrong("path", fault, Code.BAD_REGEX)
        limits = section.section("rateLimit")
        local, asking = limits.section("local"), limits.section("global")
        limit = _request_rate(local) if limits.has("local") else None
        messages = global_rates.descriptors(asking) if limits.has("global") else ()
        if messages and not has_service:
            limits.warn("global", _NOBODY_ASKED, Code.NOT_ENFORCED)
        if limit is not None or (messages and has_service):
            yield RouteRate(path, limit, messages if has_service else ())
        asking.close()
        limits.close()
        section.close()


def _request_rate(fields: Fields) -> RateLimit:
    return _rate(fields, "requests", global_rates.status(fields), _headers(fields))


def _rate(
    fields: Fields, counted: str, status: int = 429, headers: tuple[tuple[str, str], ...] = ()
) -> RateLimit:
    if not fields.has(counted):
        fields.notes.refuse(
            Code.MISSING, fields.at(counted), f"is missing; must be a whole number from 1 to {MOST}"
        )
    amount = fields.whole(counted, 1, MOST, default=1) or 1
    unit = fields.required_text("unit", one_of(UNITS), never)
    if unit and unit not in UNITS:
        fields.wrong("unit", one_of(UNITS))
    burst = fields.whole("burst", 0, MOST, default=0) or 0
    if amount + burst > MOST:
        fields.wrong("burst", f"the sum of burst and {counted} must be at most {MOST}")
    fields.close()
    return RateLimit(amount, RateUnit(unit) if unit in UNITS else RateUnit.SECOND, burst, status, headers)


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    sections = fields.sections("responseHeadersToAdd")
    result = [
        (item.required_text("name", HEADER_RULE), item.required_text("value", VALUE_RULE))
        for item in sections
    ]
    for section, (name, value) in zip(sections, result, strict=True):
        if name and (not is_name(name) or name.lower() == "host"):
            section.wrong("name", HEADER_RULE)
        if value and not is_value(value):
            section.wrong("value", VALUE_RULE)
        section.close()
    for index in duplicates([name.lower() for name, _ in result]):
        sections[index].wrong("name", "must differ from the names of the other headers", Code.DUPLICATE)
    if len(result) > MOST_HEADERS:
        fields.wrong("responseHeadersToAdd", f"must have at most {MOST_HEADERS} headers")
    return tuple(result)
