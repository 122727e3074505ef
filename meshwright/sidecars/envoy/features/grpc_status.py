"""Statistics of gRPC statuses, which are in trailers of responses with HTTP status 200."""

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.extensions.filters.http.grpc_stats.v3 import config_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class GrpcStatus(Feature):
    """Envoy's filter for counting gRPC statuses per called cluster, for all methods together.

    https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/grpc_stats_filter
    """

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the filter for gRPC statistics."""
        del terms
        # By default Envoy would keep statistics for each method name, which callers can choose freely.
        counting = config_pb2.FilterConfig(stats_for_all_methods={"value": False})
        manager.http_filters.add(name="envoy.filters.http.grpc_stats", typed_config=packed(counting))
