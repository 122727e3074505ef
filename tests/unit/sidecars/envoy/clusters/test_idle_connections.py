"""Tests of the idle time of HTTP connections to applications and to hosts outside the mesh."""

from datetime import timedelta

import pytest
from google.protobuf.any_pb2 import Any

from catalog.policy.values.destinations import ExternalDestination
from catalog.policy.values.inbound import InboundPort, OnlyRules
from catalog.policy.values.interception import SocketAddress
from catalog.store.settings import HeaderLimits
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.service import ExternalHost, Protocol, ServiceKey
from meshwright.sidecars.envoy.clusters import cluster as clusters
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2
from xds.protocol.resources.resource import Resource

SHOP = ServiceKey(Namespace("shop"), ServiceName("web"))
APPLICATION = InboundPort(
    Port(8080), Protocol.HTTP, (SHOP,), SocketAddress(IpAddress("127.0.0.1"), Port(8080)), OnlyRules()
)
OUTSIDE = ExternalDestination(ExternalHost("api.example"), Port(80), is_http=True)


def _idle_seconds(resource: Resource) -> int | None:
    """Return the idle timeout in seconds of a cluster's HTTP connections; None for Envoy's default."""
    cluster = cluster_pb2.Cluster.FromString(Any.FromString(resource.body).value)
    (written,) = cluster.typed_extension_protocol_options.values()
    options = http_protocol_options_pb2.HttpProtocolOptions.FromString(written.value)
    common = options.common_http_protocol_options
    return common.idle_timeout.seconds if common.HasField("idle_timeout") else None


@pytest.mark.parametrize("seconds", [1, 30, None])
def test_idle_connections_have_the_configured_timeout(seconds: int | None) -> None:
    """Without the timeout, a request on a connection that its server closes would be lost (503, UC)."""
    reuse = None if seconds is None else timedelta(seconds=seconds)
    made = (
        clusters.application(HeaderLimits(), reuse, SHOP, APPLICATION),
        clusters.external(HeaderLimits(), reuse, OUTSIDE),
        clusters.passthrough_http(HeaderLimits(), reuse),
    )
    assert [_idle_seconds(resource) for resource in made] == [seconds] * 3
