"""Units: parts of policy that can be excluded separately.

A unit is a value: a match of an HTTPRouteGroup (wherever a rule or split names it), the access by an object
without matches (a TrafficTarget), a TrafficSplit for all requests, or permissive mode. Further units are the
rule of a RoutePolicy and each of its matches, each match of a Gateway API route's rule, the retries of a
Retry, the log of a Telemetry, the rates and the connection limits of an UpstreamTrafficSetting, and of an
UpstreamPolicy its outlier detection, its health check, and each hash key.

Equal parts are one unit. An edited part is another unit, so knowledge about the old one expires by itself.
The id of a unit is made from its content, and is the same in every process and every release: verdicts are
saved under it, and other servers share them. It is made from the text that a value had when its kind became a
unit, so a value may get another form later (`_text`).
"""

import functools
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NewType

from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.edge import EdgeChain, EdgePort
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh, InboundPort
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsideRange
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import Forward, WeightedBackend
from catalog.policy.values.route_table import AppliedRoute, AppliedRule, AppliedSplit, RouteEntry, RouteSource
from catalog.policy.values.terms import AccessLogPolicy
from meshwright.mesh.kinds import RETRY, TELEMETRY, UPSTREAM_POLICY, UPSTREAM_TRAFFIC_SETTING
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.policies.upstreams import HashKey, HealthCheck, OutlierDetectionOverride

Limiting = RateLimits | ConnectionLimits
"""Units of UpstreamTrafficSettings."""


Reaching = OutlierDetectionOverride | HealthCheck | HashKey
"""Units of UpstreamPolicies."""


Calling = AppliedRule | AppliedRoute | Retries | AccessLogPolicy | Limiting | Reaching
"""Units about the handling of admitted calls, which are also made without it."""


Unit = HTTPMatch | AccessRule | AppliedSplit | EveryoneInTheMesh | Calling


UnitId = NewType("UnitId", str)


_IDS: Final = 4096


@functools.lru_cache(_IDS)
def unit_id(unit: Unit) -> UnitId:
    """Return the identifier of a unit: 32 hexadecimal digits, the same for equal units in every process."""
    return UnitId(hashlib.sha256(_text(unit).encode()).hexdigest()[:32])


def _text(unit: Unit) -> str:
    """Return the content of a unit as text, in the form that all releases have."""
    match unit:
        case AppliedSplit(by, shares):
            backends = _tuple(map(_backend, shares))
            return (
                f"OutboundRoute(matches=None, backends={backends}, split={by!r}, keys=(), fails_over=False)"
            )
        case AppliedRule(by, matches, actions, mirror):
            copied = "None" if mirror is None else _backend(mirror)
            return f"RequestRule(by={by!r}, matches={matches!r}, actions={actions!r}, mirror={copied})"
        case _:
            # The repr of a frozen value is the same in every process, unlike its hash.
            return repr(unit)


def _backend(to: WeightedBackend) -> str:
    place = f"upstream={to.upstream!r}, target_port={to.target_port!r}"
    return f"WeightedBackend({place}, weight={to.weight!r}, as_called={to.as_called!r})"


def _tuple(texts: Iterable[str]) -> str:
    """Return texts in the form of a tuple's repr, for example `(a, b)`, and `(a,)` for a single one."""
    words = tuple(texts)
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def describe(unit: Unit) -> str:
    """Return a short name of a unit, for example `match read` or `TrafficSplit shop/cart`."""
    match unit:
        case HTTPMatch(name):
            return f"match {name}"
        case AccessRule(by):
            return str(by)
        case AppliedSplit() | AppliedRule() | AppliedRoute():
            return str(unit.object_key)
        case Retries():
            return RETRY.name
        case AccessLogPolicy(by):
            return f"{TELEMETRY} {by}"
        case RateLimits() | ConnectionLimits():
            return UPSTREAM_TRAFFIC_SETTING.name
        case OutlierDetectionOverride() | HealthCheck() | HashKey():
            return UPSTREAM_POLICY.name
        case EveryoneInTheMesh():
            return "permissive mode"


def units(value: object) -> Iterator[Unit]:
    """Yield the units of a policy or of a part of it, possibly repeated; empty for any other value."""
    match value:
        case ProxyPolicy():
            ranges = (outside_range for port in value.outside for outside_range in port.ranges)
            for item in (*value.inbound, *value.outbound, *value.edge, *ranges, value.logs):
                yield from units(item)
        case AccessLogPolicy(by) if by is not None:
            yield value
        case InboundPort():
            yield from _of_inbound(value)
        case OutboundService() if value.protocol.is_http:
            yield from _of_calls(value)
        case EdgePort() | EdgeChain():
            yield from _of_table(value.entries)
        case ServiceDestination():
            yield from _of_destination(value)
        case OutsideRange(hosts=hosts):
            for host in hosts:
                for way in host.routes:
                    yield from way.matches or ()
        case _:
            pass


def _of_inbound(port: InboundPort) -> Iterator[Unit]:
    if port.rates != RateLimits():
        yield port.rates
    if isinstance(port.access, EveryoneInTheMesh):
        yield EveryoneInTheMesh()
    # Each match is a unit of its own, so a rejected match does not exclude its neighbours.
    for rule in port.access.rules:
        yield from (rule,) if rule.matches is None else rule.matches


def _of_destination(destination: ServiceDestination) -> Iterator[Unit]:
    if destination.limits != ConnectionLimits():
        yield destination.limits
    if destination.ejecting is not None:
        yield destination.ejecting
    if destination.checking is not None:
        yield destination.checking


def _of_calls(service: OutboundService) -> Iterator[Unit]:
    yield from _of_table(service.table)
    if service.retries is not None:
        yield service.retries


def _of_table(table: Iterable[RouteEntry]) -> Iterator[Unit]:
    for entry in table:
        for source in entry.provenance:
            yield from units_of_source(source)
        if isinstance(entry.action, Forward):
            yield from entry.action.keys


def units_of_source(source: RouteSource) -> Iterator[Unit]:
    """Yield the units behind a route entry of one object."""
    if source.match is not None:
        yield source.match
    # The rule is a unit beside its matches, because its actions may be at fault as well. A split has only
    # backends, so it is a unit only without matches.
    if source.match is None or isinstance(source.part, AppliedRule):
        yield source.part
