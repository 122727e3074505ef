"""OSM's UpstreamTrafficSetting, policy.openservicemesh.io v1alpha1: limits of calls to a host.

Values are bound by OSM's schema, and by what Envoy takes: it refuses a whole resource for a status that it
does not know, or for more than ten headers.
"""

import ipaddress
from collections.abc import Iterator
from typing import Final

from mesh.limits import ConnectionLimits, RateLimit, RateLimits, RateUnit, RouteRate, UpstreamTrafficSetting
from mesh.names import is_dns_subdomain
from mesh.policy import PolicyKey
from specs.codes import Code
from specs.durations import wait
from specs.fields import Fields, duplicates, one_of
from specs.headers import VALUE_RULE, is_name, is_value
from specs.manifest import Manifest
from specs.osm.unenforced import not_enforced
from specs.regexes import regex_fault

MOST: Final = 2**32 - 1
"""Envoy counts in 32 bits; of a rate it adds the burst to the amount."""

MOST_HEADERS: Final = 10
STATUSES: Final = frozenset(
    {*range(400, 418), *range(421, 425), 426, 428, 429, 431, *range(500, 509), 510, 511}
)
"""The statuses of errors that Envoy knows."""

UNITS: Final = tuple(RateUnit)
HOST_RULE: Final = (
    "must be the name of a service, such as web.shop.svc.cluster.local, or of a host outside the mesh: "
    "at least two DNS labels, or an IP address"
)
STATUS_RULE: Final = "must be a status of an error, 400 to 599, that Envoy knows, such as 429 or 503"
HEADER_RULE: Final = "must be the name of a header, and not host, which no answer has"

_NOBODY_ASKED: Final = not_enforced("no rate limit service is asked; local limits hold")


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
        return str(ipaddress.ip_address(host)) == host
    except ValueError:
        return False


def _connections(fields: Fields) -> ConnectionLimits:
    tcp, http = fields.section("tcp"), fields.section("http")
    found = ConnectionLimits(
        connections=tcp.whole("maxConnections", 0, MOST),
        pending_requests=http.whole("maxPendingRequests", 0, MOST),
        requests=http.whole("maxRequests", 0, MOST),
        requests_per_connection=http.whole("maxRequestsPerConnection", 0, MOST),
        retries=http.whole("maxRetries", 0, MOST),
        connect_timeout=wait(tcp, "connectTimeout"),
    )
    for each in (tcp, http, fields):
        each.close()
    return found


def _rates(fields: Fields) -> RateLimits:
    limits = fields.section("rateLimit")
    local = limits.section("local")
    tcp, http = local.section("tcp"), local.section("http")
    found = RateLimits(
        connections=_rate(tcp, "connections") if local.has("tcp") else None,
        requests=_request_rate(http) if local.has("http") else None,
        routes=tuple(_routes(fields)),
    )
    local.close()
    _not_global(limits)
    limits.close()
    return found


def _not_global(limits: Fields) -> None:
    """Warn of the limits that OSM would have asked a service for."""
    limits.accept("global")
    if limits.has("global"):
        limits.notes.warn(Code.NOT_ENFORCED, limits.at("global"), _NOBODY_ASKED)


def _routes(fields: Fields) -> Iterator[RouteRate]:
    sections = fields.sections("httpRoutes")
    paths = [each.required_text("path", "must be a regular expression (RE2) for paths") for each in sections]
    for index in duplicates(paths):
        sections[index].wrong("path", "must differ from the other routes", Code.DUPLICATE)
    for section, path in zip(sections, paths, strict=True):
        if path and (fault := regex_fault(path)):
            section.wrong("path", fault, Code.BAD_REGEX)
        limits = section.section("rateLimit")
        local = limits.section("local")
        if limits.has("local"):
            yield RouteRate(path, _request_rate(local))
        _not_global(limits)
        limits.close()
        section.close()


def _request_rate(fields: Fields) -> RateLimit:
    status = fields.whole("responseStatusCode", 400, 599, default=429) or 429
    if status not in STATUSES:
        fields.wrong("responseStatusCode", STATUS_RULE)
    return _rate(fields, "requests", status, _headers(fields))


def _rate(
    fields: Fields, counted: str, status: int = 429, headers: tuple[tuple[str, str], ...] = ()
) -> RateLimit:
    if not fields.has(counted):
        fields.notes.refuse(
            Code.MISSING, fields.at(counted), f"is missing; must be a whole number from 1 to {MOST}"
        )
    amount = fields.whole(counted, 1, MOST, default=1) or 1
    unit = fields.required_text("unit", one_of(UNITS))
    if unit and unit not in UNITS:
        fields.wrong("unit", one_of(UNITS))
    burst = fields.whole("burst", 0, MOST, default=0) or 0
    if amount + burst > MOST:
        fields.wrong("burst", f"must be at most {MOST} with {counted}")
    fields.close()
    return RateLimit(amount, RateUnit(unit) if unit in UNITS else RateUnit.SECOND, burst, status, headers)


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    sections = fields.sections("responseHeadersToAdd")
    found = [
        (each.required_text("name", HEADER_RULE), each.required_text("value", VALUE_RULE))
        for each in sections
    ]
    for section, (name, value) in zip(sections, found, strict=True):
        if name and (not is_name(name) or name.lower() == "host"):
            section.wrong("name", HEADER_RULE)
        if value and not is_value(value):
            section.wrong("value", VALUE_RULE)
        section.close()
    for index in duplicates([name.lower() for name, _ in found]):
        sections[index].wrong("name", "must differ from the other headers", Code.DUPLICATE)
    if len(found) > MOST_HEADERS:
        fields.wrong("responseHeadersToAdd", f"must be at most {MOST_HEADERS} headers")
    return tuple(found)
