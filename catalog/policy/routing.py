"""RoutePolicies: which is in force for a service, and what becomes of requests to it.

A policy counts for a service of its own namespace, whoever calls. Of several the oldest is in force
(`metadata.creationTimestamp`; those without one last), then the first by name. It is asked of the service
that is called: a split's apex, and not the backend that answers. A rule whose HTTPRouteGroups, or the matches
that it names of them, are not there fits no request.
"""

from catalog.policy.access import rule_matches
from catalog.policy.proxy import RequestRule
from catalog.store.own import route_policies_by_service
from catalog.store.view import View
from mesh.policy import PolicyKey
from mesh.routing import RoutePolicy
from mesh.service import Protocol, ServiceKey


def precedence(policy: RoutePolicy) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of a RoutePolicy among those of one service."""
    return (not policy.created, policy.created, policy.key)


def policy_of(view: View, key: ServiceKey) -> RoutePolicy | None:
    """Return the RoutePolicy in force for a service, None where there is none."""
    return min(route_policies_by_service(view).found(key), key=precedence, default=None)


def rules(view: View, key: ServiceKey, protocol: Protocol) -> tuple[RequestRule, ...]:
    """Return the rules for requests to a service, in order; none where no request is seen.

    Those behind one for all requests are not asked.
    """
    policy = policy_of(view, key) if protocol.is_http else None
    found: list[RequestRule] = []
    for rule in policy.rules if policy is not None else ():
        named = (each for ref in rule.matches for each in rule_matches(view, key.namespace, ref))
        matches = tuple(dict.fromkeys(named)) if rule.matches else None
        if policy is not None and matches != ():
            found.append(RequestRule(policy.key, matches, rule.actions))
        if matches is None:
            break
    return tuple(found)
