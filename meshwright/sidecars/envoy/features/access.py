"""Admission: Envoy's RBAC filter, which by itself denies everything.

The rules are in the route configuration and override the filter. A request without a matching route is
denied. Shadow rules beside them are never enforced; they record which requests are tapped
(`meshwright.sidecars.envoy.features.tap`).
"""

from dataclasses import dataclass

from catalog.policy.values import inbound
from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.tap import Tapped
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules import rbac
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


@dataclass(frozen=True, slots=True)
class Access(Feature):
    """The access rules of an inbound port. The listener alone does not depend on `access`."""

    access: inbound.Access
    trust_domain: TrustDomain
    tapped: Tapped = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the RBAC filter, which denies every request without the rules of routes."""
        del terms
        guard = http_rbac_pb2.RBAC(rules=rbac.deny_all())
        manager.http_filters.add(name=rbac.HTTP_FILTER, typed_config=packed(guard))

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Override the RBAC filter's rules for all routes by the port's access rules."""
        guard = http_rbac_pb2.RBAC(rules=rbac.rules(self.access, self.trust_domain))
        if self.tapped:
            guard.shadow_rules.CopyFrom(rbac.watched(self.tapped, self.trust_domain))
            guard.shadow_rules_stat_prefix = rbac.TAP_PREFIX
        per_route = http_rbac_pb2.RBACPerRoute(rbac=guard)
        routes.typed_per_filter_config[rbac.HTTP_FILTER].CopyFrom(packed(per_route))
