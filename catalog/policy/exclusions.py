"""Policy without excluded units (`catalog.policy.units`), and the intersection of two policies.

Without a unit, everything that only this unit admits is denied, and nothing more is admitted. Requests that a
split without the excluded match would have taken go where they would go without the split. Retries, logs,
limits and load balancing fall back to their defaults.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from catalog.policy.units import Unit, units_of_source
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.edge import EdgeChain, EdgeHost, EdgePort
from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsideHost, OutsidePort, OutsideRange
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import NO_BACKEND, Forward, RouteAction
from catalog.policy.values.route_table import AppliedRoute, AppliedRule, AppliedSplit, RouteEntry
from catalog.policy.values.terms import AccessLogPolicy
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.values.cached_hash import SharedTuple

T = TypeVar("T")


def admits(value: object) -> bool:
    """Return whether a policy, or a part of a policy, decides about the admission of callers."""
    return isinstance(value, InboundPort) or (isinstance(value, ProxyPolicy) and bool(value.inbound))


def without(value: T, left_out: AbstractSet[Unit]) -> T:
    """Return a policy, or a part of it, without these units; any other value unchanged.

    For example, a port whose only rule has one match, without this match, admits no caller.
    """
    match value:
        case ProxyPolicy():
            return replace(
                value,
                inbound=tuple(without(port, left_out) for port in value.inbound),
                reachable=tuple(
                    _reachable_without(reachable_services, left_out) for reachable_services in value.reachable
                ),
                outside=tuple(_outside_without(outside_port, left_out) for outside_port in value.outside),
                edge=tuple(without(port, left_out) for port in value.edge),
                logs=without(value.logs, left_out),
            )
        case AccessLogPolicy():
            plain = AccessLogPolicy()
            out = replace(value, by=None, log=plain.log, collector=None)
            return out if value in left_out else value
        case OutsideRange():
            return replace(value, hosts=tuple(_host_without(host, left_out) for host in value.hosts))
        case InboundPort():
            rates = RateLimits() if value.rates in left_out else value.rates
            return replace(value, access=_access_without(value.access, left_out), rates=rates)
        case ServiceDestination():
            return replace(
                value,
                limits=ConnectionLimits() if value.limits in left_out else value.limits,
                ejecting=None if value.ejecting in left_out else value.ejecting,
                checking=None if value.checking in left_out else value.checking,
            )
        case EdgePort():
            return replace(value, chains=tuple(without(chain, left_out) for chain in value.chains))
        case EdgeChain():
            entry = None if value.entry is None else _entry_without(value.entry, left_out)
            return replace(value, hosts=_hosts_without(value.hosts, left_out), entry=entry)
        case OutboundService() if value.protocol.is_http:
            return replace(
                value,
                table=_table_without(value.table, left_out),
                retries=None if value.retries in left_out else value.retries,
            )
        case _:
            return value


def narrowed(value: T, to: object) -> T:
    """Return a policy, or an inbound port, that admits only what both `value` and `to` admit.

    A port missing in `to` admits no caller. All other parts stay as in `value`.
    """
    match value, to:
        case ProxyPolicy(), ProxyPolicy():
            now = {(port.port, port.protocol): port for port in to.inbound}
            inbound = (narrowed(port, now.get((port.port, port.protocol))) for port in value.inbound)
            return replace(value, inbound=tuple(inbound))
        case InboundPort(), InboundPort():
            return replace(value, access=_both(value.access, to.access))
        case InboundPort(), _:
            return replace(value, access=OnlyRules())
        case ProxyPolicy(), _:
            return replace(value, inbound=tuple(narrowed(port, None) for port in value.inbound))
        case _:
            return value


def _reachable_without(
    reachable_services: ReachableServices, left_out: AbstractSet[Unit]
) -> ReachableServices:
    return replace(
        reachable_services,
        services=SharedTuple(without(service, left_out) for service in reachable_services.services),
    )


def _outside_without(port: OutsidePort, left_out: AbstractSet[Unit]) -> OutsidePort:
    return replace(port, ranges=tuple(without(outside_range, left_out) for outside_range in port.ranges))


def _host_without(host: OutsideHost, left_out: AbstractSet[Unit]) -> OutsideHost:
    """Return a host outside the mesh without the excluded routes; without routes its requests are refused."""
    outside_routes = []
    for route in host.routes:
        # `None` stands for all requests and stays; an empty tuple would stand for none.
        matches = route.matches and tuple(match for match in route.matches if match not in left_out)
        if matches != ():
            outside_routes.append(replace(route, matches=matches))
    return replace(host, routes=tuple(outside_routes))


def _access_without(access: Access, left_out: AbstractSet[Unit]) -> Access:
    result = (_rule_without(rule, left_out) for rule in access.rules)
    rules = tuple(access_rule for access_rule in result if access_rule is not None)
    # Without the unit of permissive mode only the rules are left, so less is admitted.
    everyone = isinstance(access, EveryoneInTheMesh) and EveryoneInTheMesh() not in left_out
    return EveryoneInTheMesh(rules) if everyone else OnlyRules(rules)


def _rule_without(rule: AccessRule, left_out: AbstractSet[Unit]) -> AccessRule | None:
    if rule.matches is None:
        return None if rule in left_out else rule
    matches = tuple(match for match in rule.matches if match not in left_out)
    return replace(rule, matches=matches) if matches else None


def _hosts_without(
    hosts: tuple[EdgeHost, ...] | None, left_out: AbstractSet[Unit]
) -> tuple[EdgeHost, ...] | None:
    if hosts is None:
        return None
    return tuple(replace(host, table=_table_without(host.table, left_out)) for host in hosts)


def _table_without(table: Iterable[RouteEntry], left_out: AbstractSet[Unit]) -> tuple[RouteEntry, ...]:
    entries = (_entry_without(entry, left_out) for entry in table)
    return tuple(entry for entry in entries if entry is not None)


def _entry_without(entry: RouteEntry, left_out: AbstractSet[Unit]) -> RouteEntry | None:
    """Return a route entry without excluded units; None if later entries decide about its requests.

    An entry for all requests of an object has no later entry for them. It stays, without the excluded object:
    requests of an excluded TrafficSplit get no backend, and others are handled as without the rule. An entry
    of a Gateway API route goes, and may leave requests without an entry.
    """
    result = entry
    for source in entry.provenance:
        if left_out.isdisjoint(units_of_source(source)):
            continue
        if source.match is not None:
            return None
        rest = tuple(other for other in result.provenance if other != source)
        match source.part:
            case AppliedSplit():
                result = replace(result, action=NO_BACKEND, provenance=rest)
            case AppliedRoute():
                # As without the rule: later entries, for example wider ones, get the requests of its match.
                return None
            case AppliedRule():
                result = replace(result, action=_untreated(result.action), provenance=rest, treatment=None)
    action = _action_without(result.action, left_out)
    return result if action is result.action else replace(result, action=action)


def _untreated(action: RouteAction) -> RouteAction:
    """Return an action without the part that a rule of a RoutePolicy decides."""
    return replace(action, timeout=None, mirrors=()) if isinstance(action, Forward) else action


def _action_without(action: RouteAction, left_out: AbstractSet[Unit]) -> RouteAction:
    if not isinstance(action, Forward):
        return action
    keys = tuple(key for key in action.keys if key not in left_out)
    return action if keys == action.keys else replace(action, keys=keys)


def _both(access: Access, now: Access) -> Access:
    match access, now:
        case EveryoneInTheMesh(), EveryoneInTheMesh():
            return EveryoneInTheMesh(_common(access.rules, now.rules))
        case _, EveryoneInTheMesh():
            # The current policy admits the whole mesh, so rules for callers of the mesh are kept as they are.
            return OnlyRules(_common(access.rules, now.rules, mesh_at_will=True))
        case EveryoneInTheMesh(), _:
            return OnlyRules(_common(now.rules, access.rules, mesh_at_will=True))
        case _:
            return OnlyRules(_common(access.rules, now.rules))


def _common(
    rules: tuple[AccessRule, ...], allowed: tuple[AccessRule, ...], *, mesh_at_will: bool = False
) -> tuple[AccessRule, ...]:
    """Return the intersection of two sets of rules; with `mesh_at_will` callers of the mesh need no rule."""
    by_object = {access_rule.by: access_rule for access_rule in allowed}
    result = (
        rule if mesh_at_will and not rule.from_outside else _narrower(rule, by_object.get(rule.by))
        for rule in rules
    )
    return tuple(access_rule for access_rule in result if access_rule is not None)


def _narrower(rule: AccessRule, now: AccessRule | None) -> AccessRule | None:
    """Return the intersection of two rules of one object.

    Other objects that admit the same are not considered.
    """
    if now is None:
        return None
    admitted = frozenset(now.callers)
    callers = tuple(caller for caller in rule.callers if caller in admitted)
    matches = rule.matches
    if rule.matches is None:
        matches = now.matches
    elif now.matches is not None:
        fitting = frozenset(now.matches)
        matches = tuple(match for match in rule.matches if match in fitting)
    return replace(rule, callers=callers, matches=matches) if callers and matches != () else None
