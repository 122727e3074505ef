"""Tests of the HTTP features: the order of their filters, and fields of one feature each."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations
from typing import ClassVar

import pytest

from catalog.policy.values.inbound import ExternalAuthorizer, OnlyRules
from catalog.policy.values.terms import MeshTerms
from catalog.store.settings import DenialReasons
from meshwright.mesh.config import Tracing
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, ServiceName
from meshwright.mesh.policies.authorization import Authorizer
from meshwright.mesh.policies.limits import RateLimit, RateLimits, RateUnit
from meshwright.mesh.policies.rate_services import CountedRequests, RateLimitService, RemoteAddress
from meshwright.mesh.service import Protocol
from meshwright.mesh.tap import TapChoice
from meshwright.sidecars.envoy.features import order
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.listeners.connection_manager import connection_manager
from meshwright.sidecars.layout import DENIED_HEADER
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from tests.unit.sidecars.envoy.test_translate import SHOP, inbound, only, outbound, policy
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE

TERMS = replace(
    policy().terms,
    tracing=Tracing(HostPort("jaeger", 9411)),
)
ASKED = ExternalAuthorizer(Authorizer(HostPort("opa", 9191), "asked", timedelta(seconds=1)))
INBOUND = order.inbound(TERMS.trust_domain, TERMS.denials, replace(inbound(OnlyRules()), asked=ASKED))
RULES = ["envoy.filters.http.rbac", "meshwright.looked_for"]
OUTBOUND = order.outbound(outbound(Protocol.HTTP))


def manager_of(*features: Feature) -> hcm_pb2.HttpConnectionManager:
    """Return an empty connection manager after these features have filled it."""
    manager = hcm_pb2.HttpConnectionManager()
    for feature in features:
        feature.to_manager(manager, TERMS)
    return manager


def test_http_filters_have_a_fixed_order() -> None:
    """RBAC precedes rate limits and the authorizer, and the router, which ends the chain, is last."""
    assert [http_filter.name for http_filter in manager_of(*INBOUND).http_filters] == [
        "meshwright.looked_for",
        "envoy.filters.http.rbac",
        "envoy.filters.http.ext_authz",
        "envoy.filters.http.router",
    ]
    asked = CountedRequests(RateLimitService(HostPort("limiter", 8081), "shop"), ((RemoteAddress(),),))
    rates = RateLimits(requests=RateLimit(1, RateUnit.SECOND), counted_requests=asked)
    limited = replace(inbound(OnlyRules()), rates=rates, asked=ASKED)
    features = order.inbound(TERMS.trust_domain, TERMS.denials, limited)
    assert [http_filter.name for http_filter in manager_of(*features).http_filters] == [
        "meshwright.looked_for",
        "envoy.filters.http.rbac",
        "envoy.filters.http.local_ratelimit",
        "envoy.filters.http.ratelimit",
        "envoy.filters.http.ext_authz",
        "envoy.filters.http.router",
    ]
    assert [http_filter.name for http_filter in manager_of(*OUTBOUND).http_filters] == [
        "envoy.filters.http.router"
    ]


@pytest.mark.parametrize("features", [INBOUND, OUTBOUND])
def test_each_field_is_set_by_one_feature_only(features: tuple[Feature, ...]) -> None:
    """Several features add only to lists, so their order decides nothing but the order of filters."""
    fields = [{field.name for field, _ in manager_of(feature).ListFields()} for feature in features]
    shared = {name for one, other in combinations(fields, 2) for name in one & other}
    # `local_reply_config` is a list as well: Envoy uses the first mapper that fits, and no two fit.
    assert shared <= {"access_log", "http_filters", "local_reply_config"}


def test_denial_reasons_are_computed_and_sent_as_configured() -> None:
    """The reasons go to callers or only to the log. If they are off, no part of them is configured."""
    made = {}
    for reasons in DenialReasons:
        features = order.inbound(TERMS.trust_domain, reasons, inbound(OnlyRules()))
        manager, routes = manager_of(*features), route_pb2.RouteConfiguration()
        routes.virtual_hosts.add(name="h")
        for feature in features:
            feature.to_routes(routes)
        looked_for = ["meshwright.looked_for" in routes.typed_per_filter_config, len(manager.http_filters)]
        messages = [mapper.headers_to_add[0].header.key for mapper in manager.local_reply_config.mappers]
        made[reasons] = [*looked_for, DENIED_HEADER in messages]
    assert made == {
        DenialReasons.CALLERS: [True, 3, True],
        DenialReasons.LOG: [True, 3, False],
        DenialReasons.OFF: [False, 2, False],
    }


def test_inbound_routes_have_a_guard_and_rules_and_outbound_routes_neither() -> None:
    """The guard against escaped dot segments precedes all inbound routes."""
    made = []
    for features in (INBOUND, OUTBOUND):
        routes = route_pb2.RouteConfiguration()
        routes.virtual_hosts.add(name="h").routes.add(name="local")
        for feature in features:
            feature.to_routes(routes)
        lines = [route.name for route in routes.virtual_hosts[0].routes]
        made.append((lines, sorted(routes.typed_per_filter_config)))
    assert made == [(["escaped-dot-segment", "local"], RULES), (["local"], [])]


@dataclass(frozen=True, slots=True)
class CountingFeature(Feature):
    """Feature that counts how often it adds its filter."""

    mark: str
    asked: ClassVar[list[str]] = []

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add a filter, and count."""
        self.asked.append(self.mark)
        manager.http_filters.add(name=self.mark)


def test_filters_of_features_are_made_once_for_all_routes() -> None:
    """The connection managers of many groups differ only in names, so the equal part is copied.

    Other terms make another one.
    """
    CountingFeature.asked.clear()
    hosts = [SHOP, replace(SHOP, name=ServiceName("other"))]
    made = [
        connection_manager(route, TERMS, host, (CountingFeature("a"), CountingFeature("b")))
        for route, host in (("one", hosts[0]), ("two", hosts[1]), ("one", hosts[0]))
    ]
    assert CountingFeature.asked == ["a", "b"]
    assert made[0] == made[2] != made[1]
    messages = []
    for item in made[:2]:
        manager = hcm_pb2.HttpConnectionManager.FromString(item.typed_config.value)
        host = manager.http_protocol_options.default_host_for_http_10
        messages.append((manager.stat_prefix, manager.rds.route_config_name, host, len(manager.http_filters)))
    assert messages == [("one", "one", "shop.default", 2), ("two", "two", "other.default", 2)]
    connection_manager(
        "one", replace(TERMS, denials=DenialReasons.OFF), SHOP, (CountingFeature("a"), CountingFeature("b"))
    )
    assert len(CountingFeature.asked) == 4


def test_tap_choices_are_shadow_rules_in_routes_only() -> None:
    """Shadow rules are never enforced. Without a tap there are none, and no listener changes."""
    alice = ServiceIdentity(Namespace("shop"), ServiceAccountName("alice"))
    choices = (TapChoice(), TapChoice((alice,), ("GET", "POST"), "/books"))
    port = inbound(OnlyRules())
    before, after = (
        policy(inbound=(inbound_port,)) for inbound_port in (port, replace(port, tapped=choices))
    )
    key = "envoy.filters.http.rbac"
    plain, shadowed = (
        only(proxy_policy, ROUTE)["typedPerFilterConfig"][key]["rbac"] for proxy_policy in (before, after)
    )
    assert plain == {"rules": {}}
    assert shadowed == {
        "rules": {},
        "shadowRulesStatPrefix": "tap_",
        "shadowRules": {
            "policies": {
                "0": {"permissions": [{"any": True}], "principals": [{"any": True}]},
                "1": {
                    "permissions": [
                        {
                            "andRules": {
                                "rules": [
                                    {
                                        "header": {
                                            "name": ":method",
                                            "stringMatch": {"safeRegex": {"regex": "GET|POST"}},
                                        }
                                    },
                                    {"urlPath": {"path": {"prefix": "/books"}}},
                                ]
                            }
                        }
                    ],
                    "principals": [
                        {
                            "authenticated": {
                                "principalName": {"exact": "spiffe://cluster.local/ns/shop/sa/alice"}
                            }
                        }
                    ],
                },
            }
        },
    }
    assert [only(proxy_policy, LISTENER) for proxy_policy in (before, after)] == [only(before, LISTENER)] * 2
    assert [only(proxy_policy, CLUSTER) for proxy_policy in (before, after)] == [only(before, CLUSTER)] * 2
