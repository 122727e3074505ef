"""Tests that our validation and a real Envoy agree on modified resources, wrong ones and right ones.

A false finding would withhold a good resource; a missed one would be rejected with its neighbours.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
from google.protobuf import any_pb2
from google.protobuf.message import Message

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.providers.directory.manifests import Manifests
from meshwright.sidecars.envoy.validation import faults
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from tests.acceptance.manifest_pushes import certified, settings
from tests.golden.cases import MESSAGES
from tests.golden.resource_receiver import push
from tests.golden.running_mesh import LiveMesh
from tests.meshes import texts
from tests.meshes.resources import resources
from tests.tools.deadline import until
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource, TypeUrl, encode
from xds.protocol.resources.snapshot import Snapshot

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]
MESH: Final = texts.joined(
    texts.service("shop", spec="clusterIP: 10.96.0.1"),
    texts.service("v2", app="shop"),
    texts.workload("shop", "10.0.0.1"),
    texts.workload("other", "10.0.0.3", app="shop", account="shop", spec="weight: 2"),
    texts.route_group("routes", texts.match("all", "/.*", "methods: [GET], headers: {x-tag: a.*}")),
    texts.target("itself", "shop", "shop", texts.http("routes")),
    texts.split("some", "shop", ("shop", 1), ("v2", 1)),
)
Change = Callable[[Any], object]


def _rules(change: Change) -> Change:
    """Change the RBAC rules of a route configuration."""

    def changed(message: Any) -> None:
        packed = message.typed_per_filter_config["envoy.filters.http.rbac"]
        held = http_rbac_pb2.RBACPerRoute.FromString(packed.value)
        change(held.rbac.rules.policies["shop/itself"])
        packed.Pack(held)

    return changed


def _manager(change: Change) -> Change:
    """Change the HTTP connection manager of a listener's first chain."""

    def changed(message: Any) -> None:
        packed = message.filter_chains[0].filters[0].typed_config
        held = hcm_pb2.HttpConnectionManager.FromString(packed.value)
        change(held)
        packed.Pack(held)

    return changed


def _parts(policy: Any) -> Any:
    return policy.permissions[0].and_rules.rules


def _weights(*weights: int) -> Change:
    def changed(message: Any) -> None:
        clusters = message.virtual_hosts[0].routes[0].route.weighted_clusters.clusters
        for cluster, weight in zip(clusters, weights, strict=True):
            cluster.weight.value = weight

    return changed


def _endpoint_weights(*weights: int) -> Change:
    def changed(message: Any) -> None:
        for lb_endpoint, weight in zip(message.endpoints[0].lb_endpoints, weights, strict=True):
            lb_endpoint.load_balancing_weight.value = weight

    return changed


def _path(regex: str) -> Change:
    return _rules(lambda policy: setattr(_parts(policy)[0].url_path.path.safe_regex, "regex", regex))


def _header(**fields: str) -> Change:
    def changed(policy: Any) -> None:
        for name, value in fields.items():
            setattr(_parts(policy)[1].header, name, value)

    return _rules(changed)


def _address(message: Any) -> Any:
    return message.endpoints[0].lb_endpoints[0].endpoint.address.socket_address


def _again(message: Any, field: str) -> None:
    values = getattr(message, field)
    values.add().CopyFrom(values[0])


def _first_prefix(message: Any) -> Any:
    return message.filter_chains[0].filter_chain_match.prefix_ranges[0]


CHANGES: Final[tuple[tuple[str, TypeUrl, str, Change, bool], ...]] = (
    ("no change", ROUTE, "rds-inbound.8080", lambda _: None, True),
    ("an expression of bytes", ROUTE, "rds-inbound.8080", _path(r"\xff{1000}"), True),
    ("a large expression", ROUTE, "rds-inbound.8080", _path(r"\pN{200}"), True),
    ("too large an expression", ROUTE, "rds-inbound.8080", _path("x" * 70_000), False),
    ("an empty expression", ROUTE, "rds-inbound.8080", _path(""), False),
    ("a broken expression", ROUTE, "rds-inbound.8080", _path("("), False),
    ("a wrong escape", ROUTE, "rds-inbound.8080", _path(r"/caf\é"), False),
    ("no header name", ROUTE, "rds-inbound.8080", _header(name=""), False),
    ("a header name of two lines", ROUTE, "rds-inbound.8080", _header(name="a\nb"), False),
    ("a header name beyond ASCII", ROUTE, "rds-inbound.8080", _header(name="é"), True),
    ("no permission", ROUTE, "rds-inbound.8080", _rules(lambda policy: policy.permissions.clear()), False),
    ("no principal", ROUTE, "rds-inbound.8080", _rules(lambda policy: policy.principals.clear()), False),
    ("an empty conjunction", ROUTE, "rds-inbound.8080", _rules(lambda policy: _parts(policy).clear()), False),
    (
        "a permission of nothing",
        ROUTE,
        "rds-inbound.8080",
        _rules(lambda policy: policy.permissions.add()),
        False,
    ),
    ("a host twice", ROUTE, "rds-inbound.8080", lambda message: _again(message, "virtual_hosts"), False),
    ("no domain", ROUTE, "rds-inbound.8080", lambda message: message.virtual_hosts[0].domains.clear(), False),
    (
        "a route of nothing",
        ROUTE,
        "rds-inbound.8080",
        lambda message: message.virtual_hosts[0].routes.add(),
        False,
    ),
    ("weights of nothing", ROUTE, "rds-outbound.shop/shop|80", _weights(0, 0), False),
    ("weights of one", ROUTE, "rds-outbound.shop/shop|80", _weights(0, 1), True),
    ("the greatest weights", ROUTE, "rds-outbound.shop/shop|80", _weights(2**32 - 2, 1), True),
    ("too great weights", ROUTE, "rds-outbound.shop/shop|80", _weights(2**32 - 1, 1), False),
    ("endpoint weights", ENDPOINT, "shop/shop|8080", _endpoint_weights(2**32 - 2, 1), True),
    (
        "endpoint weights that Envoy does not add up",
        ENDPOINT,
        "shop/shop|8080",
        _endpoint_weights(2**32 - 1, 1),
        True,
    ),
    ("an endpoint weight of nothing", ENDPOINT, "shop/shop|8080", _endpoint_weights(0, 1), False),
    ("no address", ENDPOINT, "shop/shop|8080", lambda item: setattr(_address(item), "address", ""), False),
    ("a name", ENDPOINT, "shop/shop|8080", lambda item: setattr(_address(item), "address", "here"), False),
    (
        "a mapped address",
        ENDPOINT,
        "shop/shop|8080",
        lambda item: setattr(_address(item), "address", "::ffff:1.2.3.4"),
        True,
    ),
    (
        "a port of 17 bits",
        ENDPOINT,
        "shop/shop|8080",
        lambda item: setattr(_address(item), "port_value", 65536),
        False,
    ),
    (
        "a locality of any text",
        ENDPOINT,
        "shop/shop|8080",
        lambda item: setattr(item.endpoints[0].locality, "zone", "\0é\n"),
        True,
    ),
    ("a chain twice", LISTENER, "outbound-listener", lambda item: _again(item, "filter_chains"), False),
    (
        "a prefix of no address",
        LISTENER,
        "outbound-listener",
        lambda item: setattr(_first_prefix(item), "address_prefix", "here"),
        False,
    ),
    (
        "a range of 129 bits",
        LISTENER,
        "outbound-listener",
        lambda item: setattr(_first_prefix(item).prefix_len, "value", 129),
        False,
    ),
    (
        "no prefix of statistics",
        LISTENER,
        "outbound-listener",
        _manager(lambda item: setattr(item, "stat_prefix", "")),
        False,
    ),
    (
        "a timeout below zero",
        LISTENER,
        "outbound-listener",
        _manager(lambda item: setattr(item.request_timeout, "seconds", -1)),
        False,
    ),
    (
        "a time to connect of nothing",
        CLUSTER,
        "shop/shop|8080",
        lambda item: item.connect_timeout.Clear(),
        False,
    ),
    (
        "a policy that is none",
        CLUSTER,
        "shop/shop|8080",
        lambda item: setattr(item, "lb_policy", 99),
        False,
    ),
)


def _base(mesh: LiveMesh) -> Snapshot:
    read = Manifests().apply("mesh.yaml", MESH)
    assert read.problems() == ()
    view = View.build(read.objects(), settings())
    (key,) = groups(view)
    policy = proxy_policy(view, key)
    return Snapshot.of((*resources(policy), *certified(mesh, view, key)))


def _message(resource: Resource) -> Message:
    wrapped = any_pb2.Any.FromString(resource.body)
    message = MESSAGES[wrapped.type_url]()
    message.ParseFromString(wrapped.value)
    return message


@pytest.mark.parametrize(
    ("type_url", "name", "change", "right"), [item[1:] for item in CHANGES], ids=[item[0] for item in CHANGES]
)
async def test_own_validation_agrees_with_envoy_on_modified_resources(
    envoy: LiveMesh, type_url: TypeUrl, name: str, change: Change, right: bool
) -> None:
    """Both accept a resource, or both reject it."""
    base = _base(envoy)
    resource = next(item for item in base.resources(type_url).values() if item.name == name)
    message = _message(resource)
    change(message)
    lines = [str(fault) for fault in faults(message)]
    rejected = await push(envoy, base.changed([encode(message, resource.references)]))
    assert (not rejected, lines == []) == (right, right), (rejected, lines)
    await until(lambda: _taken(envoy, base))


async def _taken(envoy: LiveMesh, snapshot: Snapshot) -> bool:
    """Return whether the Envoy accepts a snapshot; a late answer to the previous one may come first."""
    return await push(envoy, snapshot) == {}
