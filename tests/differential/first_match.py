"""An intentionally wrong translation: the first route that matches decides, with its own principals.

It was Open Service Mesh's: equal matches share their principals, overlapping ones do not.
"""

from catalog.policy.values.inbound import InboundPort, OnlyRules
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import packed, reference
from meshwright.sidecars.envoy.rules import matching
from meshwright.sidecars.envoy.rules.rbac import HTTP_FILTER
from protos.envoy.config.rbac.v3 import rbac_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.type.matcher.v3 import string_pb2
from tests.meshes.resources import resources
from xds.protocol.resources.resource import CLUSTER, Resource, encode


def translate(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Translate with the real translation, except for the inbound routes."""
    wrong = {
        names.inbound_routes(port.port): _routes(policy, port, port.access)
        for port in policy.inbound
        if port.protocol.is_http and isinstance(port.access, OnlyRules)
    }
    return tuple(wrong.get(resource.name, resource) for resource in resources(policy))


def _routes(policy: ProxyPolicy, port: InboundPort, access: OnlyRules) -> Resource:
    principals: dict[HTTPMatch | None, list[str]] = {}
    for rule in access.rules:
        for match in rule.matches if rule.matches is not None else (None,):
            who = [e.spiffe_id(policy.trust_domain) for e in rule.callers if isinstance(e, ServiceIdentity)]
            if who:  # whoever calls in plain text has none
                principals.setdefault(match, []).extend(who)
    cluster = names.local_cluster(policy.primary, port.port)
    routes = [_route(match, sorted(set(who)), cluster) for match, who in principals.items()]
    host = route_components_pb2.VirtualHost(name="local", domains=["*"], routes=routes)
    message = route_pb2.RouteConfiguration(name=names.inbound_routes(port.port), virtual_hosts=[host])
    return encode(message, frozenset({reference(CLUSTER, cluster)}))


def _route(match: HTTPMatch | None, who: list[str], cluster: str) -> route_components_pb2.Route:
    route_match = route_components_pb2.RouteMatch(prefix="/")
    if match is not None and match.path_regex is not None:
        route_match = route_components_pb2.RouteMatch(
            safe_regex=matching.full_match(match.path_regex).safe_regex
        )
    if match is not None:
        route_match.headers.extend(matching.header_matchers(match.request_match))
    allowed = rbac_pb2.Policy(
        permissions=[rbac_pb2.Permission(any=True)],
        principals=[
            rbac_pb2.Principal(
                authenticated=rbac_pb2.Principal.Authenticated(
                    principal_name=string_pb2.StringMatcher(exact=item)
                )
            )
            for item in who
        ],
    )
    rules = rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies={"rbac-for-route": allowed})
    per_route = http_rbac_pb2.RBACPerRoute(rbac=http_rbac_pb2.RBAC(rules=rules))
    return route_components_pb2.Route(
        match=route_match,
        route=route_components_pb2.RouteAction(cluster=cluster),
        typed_per_filter_config={HTTP_FILTER: packed(per_route)},
    )
