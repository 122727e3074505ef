"""ClientTrafficPolicy, policy.meshwright.dev v1alpha1: limits, addresses and rates of gateways' clients."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from meshwright.mesh.kinds import GATEWAY, GATEWAY_API
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
from meshwright.mesh.policies.limits import RateLimits, RouteRate
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.gateway.forms import NAME, SECTION, optional, required
from meshwright.specs.manifest import Manifest
from meshwright.specs.osm import global_rates
from meshwright.specs.values import rates
from meshwright.specs.values.durations import bounded
from meshwright.specs.values.sizes import size

MOST_TARGETS: Final = 16
MOST_ROUTES: Final = 16
MOST_CONNECTIONS: Final = 2**31 - 1
MOST_HOPS: Final = 32
TIME_RULE: Final = "must be a duration from 0s to 24h, for example 5m; 0s is no limit"
HANDSHAKE_RULE: Final = "must be a duration from 100ms to 1h, for example 10s"
BUFFER_RULE: Final = "must be a size from 1Ki to 1Gi, for example 32Ki"
WINDOW_RULE: Final = "must be a size from 64Ki to 1Gi, for example 1Mi"
HEADERS_RULE: Final = "must be a size from 1Ki to 8Mi, for example 64Ki"
_KI: Final = 1024
_MI: Final = 1024 * _KI
_GI: Final = 1024 * _MI
_DAY: Final = timedelta(hours=24)
_PARTS: Final = (
    "connections",
    "headers",
    "timeouts",
    "http2",
    "path",
    "clientAddress",
    "rateLimit",
    "httpRoutes",
)


def client_traffic_policy(manifest: Manifest) -> ClientTrafficPolicy:
    """Read a ClientTrafficPolicy; the Gateways are those of its own namespace."""
    fields = manifest.spec()
    connections, address = fields.section("connections"), fields.section("clientAddress")
    buffer = size(connections, "bufferSize", _KI, _GI, BUFFER_RULE)
    policy = ClientTrafficPolicy(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        targets=_targets(fields),
        settings=_settings(fields, connections, address),
        port=PortSettings(buffer or PortSettings().buffer_bytes, address.flag("proxyProtocol")),
        # Lint names fields without effect, and a field may be written with the value of the default.
        fields=tuple(name for name in _PARTS if fields.has(name)),
        created=manifest.metadata.text("creationTimestamp") or "",
    )
    for section in (connections, address, fields):
        section.close()
    if not policy.fields and not manifest.notes.refused:
        wanted = f"lacks settings, so the defaults hold; add one of {', '.join(_PARTS)}"
        manifest.notes.warn(Code.EMPTY, fields.path, wanted)
    return policy


def _settings(fields: Fields, connections: Fields, address: Fields) -> ClientSettings:
    headers, path, default = fields.section("headers"), fields.section("path"), ClientSettings()
    # There is no field against the normalisation of paths, because a route would decide about another path
    # than the one that the backend reads.
    settings = ClientSettings(
        connections=connections.whole("max", 1, MOST_CONNECTIONS),
        header_bytes=size(headers, "maxSize", _KI, 8 * _MI, HEADERS_RULE),
        header_count=headers.whole("maxCount", 1, 10_000),
        timeouts=_timeouts(fields.section("timeouts")),
        http2=_http2(fields.section("http2")),
        merge_slashes=path.flag("mergeSlashes", default=default.merge_slashes),
        slashes=ClientSlashes(path.choice("escapedSlashes", tuple(ClientSlashes), default.slashes)),
        trusted_hops=address.whole("trustedHops", 0, MOST_HOPS, default=0) or 0,
        rates=_rates(fields),
    )
    headers.close()
    path.close()
    return settings


def _targets(fields: Fields) -> tuple[ClientTarget, ...]:
    sections = fields.sections("targetRefs", required=True)
    targets = [_target(section) for section in sections]
    if fields.has("targetRefs") and not 1 <= len(targets) <= MOST_TARGETS:
        fields.wrong("targetRefs", f"must have 1 to {MOST_TARGETS} references to Gateways")
    for index in duplicates(targets):
        sections[index].wrong(
            "name", "must differ from the other references, by sectionName at least", Code.DUPLICATE
        )
    return tuple(targets)


def _target(fields: Fields) -> ClientTarget:
    # Both are required, as in the policies of the Gateway API, so that other kinds may be targets one day.
    for name, only in (("group", GATEWAY_API), ("kind", GATEWAY.name)):
        if not fields.has(name):
            fields.required_text(name, one_of((only,)))
        fields.choice(name, (only,), only)
    target = ClientTarget(required(fields, "name", NAME), optional(fields, "sectionName", SECTION) or "")
    fields.close()
    return target


def _timeouts(fields: Fields) -> ClientTimeouts:
    default = ClientTimeouts()

    def time(name: str, otherwise: timedelta) -> timedelta:
        given = bounded(fields, name, timedelta(), _DAY, TIME_RULE)
        return otherwise if given is None else given

    handshake = bounded(fields, "handshake", timedelta(milliseconds=100), timedelta(hours=1), HANDSHAKE_RULE)
    timeouts = ClientTimeouts(
        idle=bounded(fields, "idle", timedelta(), _DAY, TIME_RULE),
        request_headers=time("requestHeaders", default.request_headers),
        request=time("request", default.request),
        stream_idle=time("streamIdle", default.stream_idle),
        handshake=handshake or default.handshake,
    )
    fields.close()
    return timeouts


def _http2(fields: Fields) -> ClientHttp2:
    default = ClientHttp2()

    def window(name: str, otherwise: int) -> int:
        return size(fields, name, 64 * _KI, _GI, WINDOW_RULE) or otherwise

    streams = fields.whole("maxConcurrentStreams", 1, MOST_CONNECTIONS, default=default.streams)
    result = ClientHttp2(
        streams or default.streams,
        window("initialStreamWindowSize", default.stream_window),
        window("initialConnectionWindowSize", default.connection_window),
    )
    fields.close()
    return result


def _rates(fields: Fields) -> ClientRates:
    limits = fields.section("rateLimit")
    local, asking = limits.section("local"), limits.section("global")
    tcp, http, client = local.section("tcp"), local.section("http"), local.section("perClient")
    all_tcp, all_http = asking.section("tcp"), asking.section("http")
    # An absent section reads as an empty one, in which the required amount would be missing.
    result = ClientRates(
        RateLimits(
            connections=rates.rate(tcp, "connections") if local.has("tcp") else None,
            requests=rates.request_rate(http) if local.has("http") else None,
            routes=tuple(_routes(fields)),
            counted_connections=global_rates.counted_connections(all_tcp) if asking.has("tcp") else None,
            counted_requests=global_rates.counted_requests(all_http) if asking.has("http") else None,
        ),
        per_client=rates.request_rate(client) if local.has("perClient") else None,
    )
    for section in (local, asking, limits):
        section.close()
    return result


def _routes(fields: Fields) -> Iterator[RouteRate]:
    sections = fields.sections("httpRoutes")
    if len(sections) > MOST_ROUTES:
        fields.wrong("httpRoutes", f"must have at most {MOST_ROUTES} entries")
    paths = [section.required_text("path", rates.PATH_RULE) for section in sections]
    for index in duplicates(paths):
        sections[index].wrong("path", "must differ from the paths of the other routes", Code.DUPLICATE)
    for section, path in zip(sections, paths, strict=True):
        # The expression is checked here, because Envoy rejects the whole listener for a wrong one.
        if path and (fault := section.notes.expressions.fault(path)):
            section.wrong("path", fault, Code.BAD_REGEX)
        limits = section.section("rateLimit", required=True)
        local = limits.section("local", required=section.has("rateLimit"))
        limit = rates.request_rate(local) if limits.has("local") else None
        limits.close()
        section.close()
        yield RouteRate(path, limit)
