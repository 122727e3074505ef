"""A translation with HTTP access rules in listeners instead of route configurations.

It admits and refuses the same requests; only the time at which a change takes effect differs.
"""

from google.protobuf import any_pb2
from google.protobuf.message import Message

from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.rules import rbac
from meshwright.sidecars.envoy.rules.rbac import HTTP_FILTER
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from tests.meshes.resources import resources
from xds.protocol.resources.resource import LISTENER, Resource, encode


def translate(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Translate with the real translation, then move the rules of the inbound ports."""
    ports = {names.inbound_routes(port.port): port for port in policy.inbound if port.protocol.is_http}
    return tuple(_moved(policy, ports, resource) for resource in resources(policy))


def _moved(policy: ProxyPolicy, ports: dict[str, InboundPort], resource: Resource) -> Resource:
    if resource.name in ports:
        routes = route_pb2.RouteConfiguration()
        _open(resource, routes)
        routes.typed_per_filter_config.clear()
        return encode(routes, resource.references)
    if resource.type_url != LISTENER:
        return resource
    listener = listener_pb2.Listener()
    _open(resource, listener)
    for chain in listener.filter_chains:
        for item in chain.filters:
            _guard(policy, ports, item)
    return encode(listener, resource.references)


def _guard(
    policy: ProxyPolicy, ports: dict[str, InboundPort], result: listener_components_pb2.Filter
) -> None:
    manager = hcm_pb2.HttpConnectionManager()
    if not result.typed_config.Unpack(manager) or manager.rds.route_config_name not in ports:
        return
    rules = rbac.rules(ports[manager.rds.route_config_name].access, policy.trust_domain)
    for http_filter in manager.http_filters:
        if http_filter.name == HTTP_FILTER:
            http_filter.typed_config.CopyFrom(packed(http_rbac_pb2.RBAC(rules=rules)))
    result.typed_config.CopyFrom(packed(manager))


def _open(resource: Resource, message: Message) -> None:
    any_pb2.Any.FromString(resource.body).Unpack(message)
