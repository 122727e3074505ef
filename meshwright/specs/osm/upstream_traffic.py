"""OSM's UpstreamTrafficSetting, policy.openservicemesh.io v1alpha1: limits of calls to a host.

Values have the bounds of OSM's schema and of Envoy.
"""

import ipaddress
from collections.abc import Iterator
from typing import Final

from meshwright.mesh.names import is_dns_subdomain
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimits,
    RouteRate,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.manifest import Manifest
from meshwright.specs.osm import global_rates
from meshwright.specs.osm.unenforced_policy import not_enforced
from meshwright.specs.values import rates
from meshwright.specs.values.durations import wait

HOST_RULE: Final = (
    "must be the name of a service, for example web.shop.svc.cluster.local, or a host outside the "
    "mesh: a name of at least two DNS labels, or an IP address"
)

_NOBODY_ASKED: Final = not_enforced(
    "spec.rateLimit.global.http is missing, which names the rate limit service"
)


def upstream_traffic_setting(manifest: Manifest) -> UpstreamTrafficSetting:
    """Read an UpstreamTrafficSetting."""
    fields = manifest.spec()
    host = _host(fields)
    connections = _connections(fields.section("connectionSettings"))
    limits = _rates(fields)
    fields.close()
    return UpstreamTrafficSetting(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        host=host,
        connections=connections,
        rates=limits,
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
        connections=tcp.whole("maxConnections", 0, rates.MOST),
        pending_requests=http.whole("maxPendingRequests", 0, rates.MOST),
        requests=http.whole("maxRequests", 0, rates.MOST),
        requests_per_connection=http.whole("maxRequestsPerConnection", 0, rates.MOST),
        retries=http.whole("maxRetries", 0, rates.MOST),
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
        connections=rates.rate(tcp, "connections") if local.has("tcp") else None,
        requests=rates.request_rate(http) if local.has("http") else None,
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
    paths = [item.required_text("path", rates.PATH_RULE) for item in sections]
    for index in duplicates(paths):
        sections[index].wrong("path", "must differ from the paths of the other routes", Code.DUPLICATE)
    for section, path in zip(sections, paths, strict=True):
        if path and (fault := section.notes.expressions.fault(path)):
            section.wrong("path", fault, Code.BAD_REGEX)
        limits = section.section("rateLimit")
        local, asking = limits.section("local"), limits.section("global")
        limit = rates.request_rate(local) if limits.has("local") else None
        messages = global_rates.descriptors(asking) if limits.has("global") else ()
        if messages and not has_service:
            limits.warn("global", _NOBODY_ASKED, Code.NOT_ENFORCED)
        if limit is not None or (messages and has_service):
            yield RouteRate(path, limit, messages if has_service else ())
        asking.close()
        limits.close()
        section.close()
