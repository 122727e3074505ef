"""Cluster with the names of a gateway's listeners, for the agent.

Envoy forgets a listener that it could not bind as soon as the listener is withdrawn. The agent must know of
the listener nevertheless, because a gateway that serves only a part of its ports is not ready.
"""

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct

from catalog.policy.values.edge import EdgePort
from meshwright.sidecars import layout
from meshwright.sidecars.envoy import names
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from xds.protocol.resources.resource import Resource, encode

_CONNECT_TIMEOUT: Final = Duration(seconds=5)


def gateway_listeners(ports: tuple[EdgePort, ...]) -> Resource:
    """Return the cluster, which no listener or route refers to; without ports its list is empty."""
    metadata = Struct()
    metadata.update(
        {
            "gateway": str(ports[0].gateway) if ports else "",
            "listeners": [
                names.listener(names.EDGE_LISTENER, where) for port in ports for where in port.listen
            ],
        }
    )
    message = cluster_pb2.Cluster(
        name=layout.GATEWAY_CLUSTER,
        type=cluster_pb2.Cluster.DiscoveryType.STATIC,
        connect_timeout=_CONNECT_TIMEOUT,
        load_assignment=endpoint_pb2.ClusterLoadAssignment(cluster_name=layout.GATEWAY_CLUSTER),
    )
    message.metadata.filter_metadata[layout.GATEWAY_METADATA].CopyFrom(metadata)
    return encode(message)
