"""Units: the parts of policy that can be left out by themselves.

A unit is a part of policy as a value: a match of an HTTPRouteGroup wherever a rule or a split names it, what
an object (a TrafficTarget) admits where it names no matches, a TrafficSplit for all requests, permissive
mode. Equal parts are one unit, an edited one is another: what is known of a unit lapses by itself. Its id is
made from its content, and is the same in every process. A rule of a RoutePolicy is one, and each of its
matches; what a Retry says is tried again; what a Telemetry says is logged; what an UpstreamTrafficSetting
limits, rates and connections each; of an UpstreamPolicy whom it ejects, whom it asks, and each key of a
consistent hash.
"""

import functools
import hashlib
from collections.abc import Iterator
from typing import Final, NewType

from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh, InboundPort
from catalog.policy.values.outbound import OutboundRoute, OutboundService, RequestRule
from catalog.policy.values.outside import OutsideRange
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.terms import AccessLogPolicy
from meshwright.mesh.kinds import RETRY, TELEMETRY, UPSTREAM_POLICY, UPSTREAM_TRAFFIC_SETTING
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.policies.upstreams import HashKey, HealthCheck, OutlierDetectionOverride

Limiting = RateLimits | ConnectionLimits
"""What UpstreamTrafficSettings say."""


Reaching = OutlierDetectionOverride | HealthCheck | HashKey
"""What UpstreamPolicies say."""


Calling = RequestRule | Retries | AccessLogPolicy | Limiting | Reaching
"""What is done with calls that are admitted; they are made without it as well."""


Unit = HTTPMatch | AccessRule | OutboundRoute | EveryoneInTheMesh | Calling


UnitId = NewType("UnitId", str)


_IDS: Final = 4096


@functools.lru_cache(_IDS)
def unit_id(unit: Unit) -> UnitId:
    """Return 32 hexadecimal digits that are the same for equal units, in every process."""
    return UnitId(hashlib.sha256(repr(unit).encode()).hexdigest()[:32])


def describe(unit: Unit) -> str:
    """Return in a few words what a unit is."""
    match unit:
        case HTTPMatch(name):
            return f"match {name}"
        case AccessRule(by):
            return str(by)
        case OutboundRoute():
            return f"TrafficSplit {unit.split}"
        case RequestRule(by):
            return f"RoutePolicy {by}"
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
    """Yield the units of a policy or of a part of it, some more than once; none of anything else."""
    match value:
        case ProxyPolicy():
            ranges = (each for port in value.outside for each in port.ranges)
            for each in (*value.inbound, *value.outbound, *ranges, value.logs):
                yield from units(each)
        case AccessLogPolicy(by) if by is not None:
            yield value
        case InboundPort():
            yield from _of_inbound(value)
        case OutboundService() if value.protocol.is_http:
            yield from _of_calls(value)
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
    # By matches where there are any: one that is refused must not cost its neighbours.
    for rule in port.access.rules:
        yield from (rule,) if rule.matches is None else rule.matches


def _of_destination(found: ServiceDestination) -> Iterator[Unit]:
    if found.limits != ConnectionLimits():
        yield found.limits
    if found.ejecting is not None:
        yield found.ejecting
    if found.checking is not None:
        yield found.checking


def _of_calls(service: OutboundService) -> Iterator[Unit]:
    for route in service.routes:
        yield from route.keys
        if route.split is not None:
            yield from (route,) if route.matches is None else route.matches
    for rule in service.rules:
        yield rule
        yield from rule.matches or ()
    if service.retries is not None:
        yield service.retries
