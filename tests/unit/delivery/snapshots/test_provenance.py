"""Tests of provenance: each resource knows the objects it was made from, and no others."""

from datetime import timedelta
from typing import Any

import pytest

from catalog.policy.provenance import ISSUER, InputObject
from catalog.relations import groups
from catalog.relations.groups import members
from catalog.store.view import MeshSettings, View, kind_in
from certs.keys.material import ServiceCertificate
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.rendering import GroupInput, resources
from meshwright.delivery.snapshots.translation import translation
from meshwright.engine.table import Table
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import (
    BACKEND_TLS_POLICY,
    CERTIFICATE,
    CLIENT_TRAFFIC_POLICY,
    CONFIG_MAP,
    EGRESS,
    ENDPOINT_SLICE,
    EXTENSION_SERVICE,
    EXTERNAL_AUTHORIZATION,
    GATEWAY,
    GATEWAY_CLASS,
    HTTP_ROUTE,
    HTTP_ROUTE_GROUP,
    INGRESS_BACKEND,
    LISTENER_SET,
    MESH_CONFIG,
    MESH_ROOT_CERTIFICATE,
    MUTUAL_TLS,
    NAMESPACE,
    REFERENCE_GRANT,
    RETRY,
    ROUTE_POLICY,
    SECRET,
    SERVICE,
    TCP_ROUTE,
    TELEMETRY,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
)
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.mesh.objects import EndpointSlice, ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.authorization import Authorizer, ExternalAuthorization
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from meshwright.mesh.policies.routing import RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.telemetry import AccessLog, ExtensionService, LogExport, Telemetry
from meshwright.mesh.policies.upstreams import OutlierDetectionOverride, UpstreamPolicy
from meshwright.providers.dns.slices import FoundSlice
from meshwright.sidecars.contract.driver import Piece
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.meshes import values as a
from xds.cache import NodeKey
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceName, TypeUrl
from xds.protocol.resources.resource import SECRET as SECRET_TYPE

THINGS = (
    MeshConfig(),
    a.service("shop"),
    a.service("shop-v1"),
    a.service("shop-v2"),
    a.service("bank"),
    a.workload("buyer", "10.0.0.1"),
    a.workload("shop-v1", "10.0.0.2"),
    a.workload("shop-v2", "10.0.0.3"),
    a.workload("bank", "10.0.0.4"),
    a.split("weights", "shop", ("shop-v1", 1), ("shop-v2", 1)),
    a.target("to-v1", "buyer", "shop-v1", a.http("all")),
    a.target("to-v2", "buyer", "shop-v2", a.http("all")),
    a.target("to-bank", "buyer", "bank", a.http("money")),
    a.route_group("all", a.match("any", "/.*")),
    a.route_group("money", a.match("pay", "/pay")),
    RoutePolicy(
        a.policy_key("way"),
        a.service_key("bank"),
        (RouteRule((a.http("money"),), RouteActions(timedelta(seconds=1))),),
    ),
    Telemetry(a.policy_key("logs"), access_log=AccessLog(export=LogExport(a.policy_key("collector")))),
    ExtensionService(a.policy_key("collector"), HostPort("collector", 4317)),
    UpstreamPolicy(a.policy_key("reach"), a.service_key("bank"), OutlierDetectionOverride(3)),
    ExternalAuthorization(
        a.policy_key("opa"), Authorizer(HostPort("opa.example", 9191), "asked", timedelta(seconds=1))
    ),
    MutualTLS(a.policy_key("moving"), TlsMode.PERMISSIVE, plaintext=PlainText()),
    Retry(
        a.policy_key("again"),
        a.identity("buyer"),
        (a.service_key("bank"),),
        Retries((RetryCondition.RESET,)),
    ),
    UpstreamTrafficSetting(
        a.policy_key("limits"),
        "bank.default",
        ConnectionLimits(1),
        RateLimits(RateLimit(1, RateUnit.HOUR), RateLimit(1, RateUnit.HOUR)),
    ),
)


def _serving(view: View) -> GroupSnapshots:
    serving = GroupSnapshots(view, translation(EnvoyDriver()))
    issued: dict[Any, ServiceCertificate] = {
        workload.identity: a.certificate(workload.identity, "1") for workload in view.workloads.values()
    }
    serving.rendering.certify(issued, b"ROOT")
    for _ in serving.steps(PublishedSnapshots(), serving.touched()):
        pass
    return serving


def _group(serving: GroupSnapshots, name: str) -> groups.ProxyGroup:
    proxy_group = serving.group(NodeKey(f"{name}-uuid.{name}.default"))
    assert proxy_group is not None
    return proxy_group


def _behind(proxy: str, type_url: TypeUrl, name: str, *things: object) -> list[str]:
    serving = _serving(a.view(*(things or THINGS)))
    input_objects = serving.objects_behind(_group(serving, proxy), type_url, ResourceName(name))
    return [str(input_object.key) for input_object in input_objects]


CONFIG = "MeshConfig osm-system/osm-mesh-config"


def test_outbound_route_names_its_service_split_targets_and_route_groups() -> None:
    """The bank's objects are left out, although the same proxy calls the bank."""
    assert _behind("buyer", ROUTE, "rds-outbound.default/shop|80") == [
        "HTTPRouteGroup default/all",
        CONFIG,
        "Service default/shop",
        "Service default/shop-v1",
        "Service default/shop-v2",
        "TrafficSplit default/weights",
        "TrafficTarget default/to-v1",
        "TrafficTarget default/to-v2",
        "Workload default/shop-v1",
        "Workload default/shop-v2",
    ]


def test_route_of_another_service_names_only_its_own_objects() -> None:
    """The bank's route has the bank's route group, and nothing of the shop."""
    result = _behind("buyer", ROUTE, "rds-outbound.default/bank|80")
    assert [item for item in result if "shop" in item or "all" in item] == []
    assert "HTTPRouteGroup default/money" in result


def test_inbound_route_names_the_objects_that_admit_its_callers() -> None:
    """This is the server's side of the same policy."""
    assert _behind("bank", ROUTE, "rds-inbound.8080") == [
        "HTTPRouteGroup default/money",
        CONFIG,
        "MutualTLS default/moving",
        "Service default/bank",
        "TrafficTarget default/to-bank",
        "UpstreamTrafficSetting default/limits",
        "Workload default/bank",
    ]


def test_load_assignment_names_the_workloads_of_its_service() -> None:
    """It names neither splits to the service nor workloads of others."""
    result = _behind("buyer", ENDPOINT, "default/shop-v1|8080")
    assert [item for item in result if item.startswith("Workload")] == ["Workload default/shop-v1"]
    assert [item for item in result if item.startswith("TrafficSplit")] == []


def test_secret_names_its_identity_and_roots_name_their_trust_domain() -> None:
    """A certificate has the names of its identity's services, so it depends on these."""
    assert _behind("bank", SECRET_TYPE, "service-cert") == [
        "Service default/bank",
        "Workload default/bank",
        "certificate default/bank",
    ]
    assert _behind("bank", SECRET_TYPE, "root-cert:cluster.local") == ["trust bundle cluster.local"]


def test_listener_names_all_objects_of_its_content() -> None:
    """The outbound listener has both services; the bank's inbound listener has none of the shop."""
    outbound = _behind("buyer", LISTENER, "outbound-listener")
    assert {"Service default/shop", "Service default/bank", "TrafficSplit default/weights"} <= {*outbound}
    inbound = _behind("bank", LISTENER, "inbound-listener")
    assert [item for item in inbound if "shop" in item] == []
    assert "Service default/bank" in inbound


def test_inputs_of_a_secret_have_their_places() -> None:
    """The place of the n-th object is line n; a certificate's place is its issuer."""
    serving = _serving(a.view(*THINGS))
    input_objects = serving.objects_behind(_group(serving, "bank"), SECRET_TYPE, ResourceName("service-cert"))
    assert input_objects == (
        InputObject(ObjectKey(SERVICE, Namespace("default"), "bank"), InFile("test", 1, 5)),
        InputObject(ObjectKey(WORKLOAD, Namespace("default"), "bank"), InFile("test", 1, 9)),
        InputObject(ObjectKey(CERTIFICATE, Namespace("default"), ServiceAccountName("bank")), ISSUER),
    )


def test_endpoint_from_the_dns_names_the_resolved_name_and_nameserver() -> None:
    """It is an object like others, but its place is the nameserver."""
    value = EndpointSlice("shop-v1", Namespace("default"), "shop-v1-dns", ("10.0.0.2",), (("", 8080),))
    sourced_object = FoundSlice(value, "shop.test at 10.9.0.1").sourced()
    serving = _serving(View.build({**a.objects(*THINGS), sourced_object.key: sourced_object}, MeshSettings()))
    name = ResourceName("default/shop-v1|8080")
    behind = map(str, serving.objects_behind(_group(serving, "buyer"), ENDPOINT, name))
    assert "EndpointSlice default/shop-v1-dns (dns (shop.test at 10.9.0.1))" in behind


def test_order_of_objects_does_not_change_the_provenance() -> None:
    """The same objects in reverse order give the same list."""
    name = "rds-outbound.default/shop|80"
    assert _behind("buyer", ROUTE, name) == _behind("buyer", ROUTE, name, *reversed(THINGS))


def test_unknown_resource_has_no_inputs() -> None:
    """Here the group has no cluster of this name."""
    assert _behind("buyer", CLUSTER, "nobody") == []


def test_resource_of_a_failed_group_has_all_objects_that_the_group_read() -> None:
    """An operator who looks for the cause needs these objects."""
    serving = _serving(a.view(*THINGS))

    def broken(_: GroupInput) -> tuple[Piece, ...]:
        raise ValueError

    serving.rendering.translate = broken
    result = {
        str(input_object.key)
        for input_object in serving.objects_behind(_group(serving, "buyer"), ROUTE, ResourceName("x"))
    }
    assert {"Service default/shop", "Service default/bank", "TrafficSplit default/weights"} <= result


def test_provenance_computes_one_value_and_keeps_none() -> None:
    """Parts are already computed; only the route table of a service is no value of its own."""
    view = a.view(*THINGS)
    serving = _serving(view)
    view.graph.collect()
    computed, encoded, size = view.graph.computed, serving.rendering.encoded, view.graph.size()
    group = _group(serving, "buyer")
    for type_url, name in ((ROUTE, "rds-outbound.default/shop|80"), (ENDPOINT, "default/bank|8080")):
        assert serving.objects_behind(group, type_url, ResourceName(name))
    assert (view.graph.computed, serving.rendering.encoded) == (computed + 1, encoded)
    view.graph.collect()
    assert view.graph.size() == size


NO_OBJECTS = {"objects", "settings", "admissions", "taps"}
NOT_SERVED = {"pod templates"}


def test_every_table_has_a_kind_of_object_or_is_a_known_exception() -> None:
    """A new table fails here until it is listed. No served resource depends on pod templates."""
    view = a.view()
    made = (*vars(view).values(), *view.made.values())
    tables = {item.name for item in made if isinstance(item, Table)}
    assert {name for name in tables if kind_in(name) is None} == NO_OBJECTS | NOT_SERVED
    assert {kind_in(name) for name in tables} - {None} == {
        CLIENT_TRAFFIC_POLICY,
        BACKEND_TLS_POLICY,
        CONFIG_MAP,
        EGRESS,
        ENDPOINT_SLICE,
        GATEWAY,
        GATEWAY_CLASS,
        HTTP_ROUTE,
        HTTP_ROUTE_GROUP,
        LISTENER_SET,
        REFERENCE_GRANT,
        EXTERNAL_AUTHORIZATION,
        INGRESS_BACKEND,
        EXTENSION_SERVICE,
        MESH_CONFIG,
        MESH_ROOT_CERTIFICATE,
        MUTUAL_TLS,
        NAMESPACE,
        RETRY,
        ROUTE_POLICY,
        SECRET,
        SERVICE,
        TCP_ROUTE,
        TELEMETRY,
        TRAFFIC_SPLIT,
        TRAFFIC_TARGET,
        UPSTREAM_POLICY,
        UPSTREAM_TRAFFIC_SETTING,
        WORKLOAD,
    }


@pytest.mark.parametrize("thing", THINGS[1:], ids=lambda item: type(item).__name__)
def test_object_that_changes_a_resource_is_in_its_provenance(thing: object) -> None:
    """Each object is left out in turn: a resource that differs without it must have named it."""
    whole, without = (
        _serving(a.view(*THINGS)),
        _serving(a.view(*(e for e in THINGS if e is not thing))),
    )
    named = a.object_key(thing)
    compared = 0
    for group, made in _resources(whole).items():
        others = _resources(without).get(group)
        if others is None:
            continue
        for (type_url, name), version in made.items():
            if others.get((type_url, name)) != version:
                input_objects = whole.objects_behind(group, type_url, name)
                assert named in [input_object.key for input_object in input_objects], (group, name)
                compared += 1
    assert compared or named.kind in (WORKLOAD, TELEMETRY)


def _resources(serving: GroupSnapshots) -> dict[groups.ProxyGroup, dict[tuple[TypeUrl, ResourceName], str]]:
    return {
        group: {
            (resource.type_url, resource.name): resource.version
            for resource in resources(serving.rendering, group).resources
        }
        for group in members(serving.view)
    }
