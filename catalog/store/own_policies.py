"""Our own policies in a view, with their indexes."""

from typing import Final

from catalog.store.view import IN_VIEW, kind
from meshwright.mesh.kinds import (
    CLIENT_TRAFFIC_POLICY,
    EXTERNAL_AUTHORIZATION,
    MUTUAL_TLS,
    ROUTE_POLICY,
    UPSTREAM_POLICY,
)
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.client_traffic import ClientTrafficPolicy
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.policies.routing import RoutePolicy
from meshwright.mesh.policies.upstreams import UpstreamPolicy

route_policies: Final = kind(
    RoutePolicy, ROUTE_POLICY, "RoutePolicies", lambda route_policy: route_policy.key
)
route_policies_by_service: Final = IN_VIEW.index(
    "RoutePolicies by service", route_policies, lambda _, route_policy: (route_policy.service,)
)
upstream_policies: Final = kind(
    UpstreamPolicy, UPSTREAM_POLICY, "UpstreamPolicies", lambda policy: policy.key
)
upstream_policies_by_service: Final = IN_VIEW.index(
    "UpstreamPolicies by service", upstream_policies, lambda _, policy: (policy.service,)
)

mutual_tls: Final = kind(MutualTLS, MUTUAL_TLS, "MutualTLSes", lambda result: result.key)
mutual_tls_in: Final = IN_VIEW.index("MutualTLSes by namespace", mutual_tls, lambda key, _: (key.namespace,))

external_authorizations: Final = kind(
    ExternalAuthorization,
    EXTERNAL_AUTHORIZATION,
    "ExternalAuthorizations",
    lambda authorization: authorization.key,
)
external_authorizations_in: Final = IN_VIEW.index(
    "ExternalAuthorizations by namespace", external_authorizations, lambda key, _: (key.namespace,)
)

client_traffic_policies: Final = kind(
    ClientTrafficPolicy, CLIENT_TRAFFIC_POLICY, "ClientTrafficPolicies", lambda policy: policy.key
)
client_traffic_policies_by_gateway: Final = IN_VIEW.index(
    "ClientTrafficPolicies by gateway",
    client_traffic_policies,
    lambda _, policy: tuple(dict.fromkeys(map(policy.gateway_of, policy.targets))),
)
"""ClientTrafficPolicies by the gateways that they name; a gateway may be missing."""
