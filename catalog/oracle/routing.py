"""Rule of a RoutePolicy for a request: the first fitting one, in the policy in force."""

from dataclasses import replace

from catalog.oracle.gateway import routes_for, sent_by_rule
from catalog.oracle.request.request import Request, fits
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.own_policies import route_policies
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.policies.routing import RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import PolicyKey, Rule
from meshwright.mesh.service import ServicePort


def rule_for(view: View, request: Request, port: ServicePort) -> tuple[RoutePolicy, RouteRule] | None:
    """Return the policy and rule for a forwarded request to a service's port, or `None`.

    Beside a route of the Gateway API no RoutePolicy is in force.
    The oldest RoutePolicy of the service is in force, else the first by name. On TCP ports requests are
    invisible.
    """
    if not spoken(port, backing(view, request.service)).is_http or routes_for(view, request, port):
        return None
    result = (
        route_policy
        for route_policy in route_policies(view).values()
        if route_policy.service == request.service
    )
    # "~" sorts after every timestamp, so objects without one are last.
    policy = min(result, key=lambda item: (item.created or "~", item.key), default=None)
    for rule in policy.rules if policy is not None else ():
        if policy is not None and (
            not rule.matches or any(_fits(view, match, request) for match in rule.matches)
        ):
            return policy, rule
    return None


def sent(view: View, request: Request) -> Request:
    """Return a request with the changes that the client's sidecar makes: by a route, or a RoutePolicy."""
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if request.identity is None or port is None or request.forwarded:
        return request
    if routes_for(view, request, port):
        return sent_by_rule(view, request, port)
    result = rule_for(view, request, port)
    if result is None:
        return request
    changes = result[1].actions.request_headers
    gone = {*changes.remove, *(name for name, _ in changes.put)}
    kept = (header for header in request.headers if header[0].lower() not in gone)
    return replace(request, headers=(*kept, *changes.put, *changes.add))


def _fits(view: View, reference: Rule, request: Request) -> bool:
    group = http_route_groups(view).get(PolicyKey(request.service.namespace, reference.name))
    named = (match for match in (group.matches if group is not None else ()))
    return any(
        fits(http_match, request)
        for http_match in named
        if not reference.matches or http_match.name in reference.matches
    )
