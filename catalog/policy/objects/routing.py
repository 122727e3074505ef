"""RoutePolicies: the one in force for a service, and its rules for requests.

A policy counts for a service of its own namespace, for all callers. Of several the oldest is in force
(`metadata.creationTimestamp`; those without one last), then the first by name. The called service counts: a
split's apex, not the backend that answers. A rule with missing HTTPRouteGroups or matches fits no request.
"""

from collections.abc import Callable, Iterator

from catalog.policy.access import once, rule_matches
from catalog.policy.objects.splits import backend_port
from catalog.policy.values.route_actions import HttpVersion, WeightedBackend
from catalog.policy.values.route_table import AppliedRule
from catalog.store.own_policies import route_policies_by_service
from catalog.store.view import View
from meshwright.mesh.policies.routing import RouteActions, RoutePolicy
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Protocol, ServiceKey, ServicePort

Place = tuple[ServiceKey, ServicePort]
"""A service with one of its ports."""


def precedence(policy: RoutePolicy) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of a RoutePolicy for one service."""
    return (not policy.created, policy.created, policy.key)


def policy_of(view: View, key: ServiceKey) -> RoutePolicy | None:
    """Return the RoutePolicy that applies to a service, or `None`."""
    return min(route_policies_by_service(view).lookup(key), key=precedence, default=None)


def rules(
    view: View, key: ServiceKey, port: ServicePort, protocol: Protocol, reached: Callable[[Place], bool]
) -> tuple[AppliedRule, ...]:
    """Return the rules for requests to a service's port, in order; empty on a port without HTTP.

    Rules after one for all requests never apply, and are left out. Copies go only to places that the client
    has `reached`.
    """
    policy = policy_of(view, key) if protocol.is_http else None
    applied: list[AppliedRule] = []
    for rule in policy.rules if policy is not None else ():
        named = (rule_matches(view, key.namespace, reference) for reference in rule.matches)
        matches = once(named) if rule.matches else None
        if policy is not None and matches != ():
            place = mirrored(view, key, port, rule.actions)
            copied = place is not None and reached(place)
            to = _copies(place, protocol) if place is not None and copied else None
            applied.append(AppliedRule(policy.key, matches, rule.actions, to))
        # The rule is for all requests, so later rules can never apply.
        if matches is None:
            break
    return tuple(applied)


def _copies(place: Place, protocol: Protocol) -> WeightedBackend:
    # Envoy would send copies by HTTP/1.1, which gRPC does not have.
    version = HttpVersion.HTTP2 if protocol is Protocol.GRPC else HttpVersion.CALLERS
    return WeightedBackend(place[0], place[1].target, 1, version=version)


def mirrors(view: View, key: ServiceKey, port: ServicePort) -> Iterator[Place]:
    """Yield the services and ports that get copies of the requests to a service's port."""
    policy = policy_of(view, key)
    for rule in policy.rules if policy is not None else ():
        if (place := mirrored(view, key, port, rule.actions)) is not None:
            yield place


def mirrored(view: View, key: ServiceKey, port: ServicePort, actions: RouteActions) -> Place | None:
    """Return the receiver of copies: the same port, by number or name, of another service.

    A headless service has no address of its own, and gets no copies.
    """
    if actions.mirror is None:
        return None
    to = ServiceKey(key.namespace, actions.mirror.service)
    service = view.services.get(to)
    there = None if service is None or service.headless else backend_port(port, service)
    return None if there is None else (to, there)
