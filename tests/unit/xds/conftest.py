"""Fixtures of the xDS tests: small resources of each type."""

from collections.abc import Callable

import pytest

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    Resource,
    ResourceName,
    TypeUrl,
    encode,
)

Make = Callable[..., Resource]


def make(type_url: TypeUrl, name: str, content: int = 0) -> Resource:
    """Make a resource whose version depends on `content`."""
    match type_url:
        case _ if type_url == CLUSTER:
            cluster = cluster_pb2.Cluster(name=name)
            cluster.connect_timeout.FromSeconds(content + 1)
            return encode(cluster, frozenset(((ENDPOINT, ResourceName(name)),)))
        case _ if type_url == ENDPOINT:
            assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name=name)
            assignment.policy.overprovisioning_factor.value = content + 100
            return encode(assignment)
        case _ if type_url == LISTENER:
            return encode(listener_pb2.Listener(name=name, stat_prefix=str(content)))
        case _ if type_url == ROUTE:
            return encode(
                route_pb2.RouteConfiguration(
                    name=name, max_direct_response_body_size_bytes={"value": content}
                )
            )
        case _:
            raise AssertionError(type_url)


@pytest.fixture(name="make", scope="session")
def make_fixture() -> Make:
    """Provide `make` to tests, because test files cannot import this file."""
    return make
