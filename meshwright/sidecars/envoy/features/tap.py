"""Requests that somebody watches, told to the control plane one by one.

The log stands in every inbound connection manager, since none can be added without ending connections. It
tells of those alone that the RBAC filter has noted (`meshwright.sidecars.envoy.rules.rbac.watched`): of none,
unless their route configuration says so. No stream is opened before there is something to tell.
https://www.envoyproxy.io/docs/envoy/latest/api-v3/extensions/access_loggers/grpc/v3/als.proto
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.bootstrap.bootstrap import ADS_CLUSTER
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules import rbac
from protos.envoy.config.accesslog.v3 import accesslog_pb2
from protos.envoy.config.core.v3 import config_source_pb2, grpc_service_pb2
from protos.envoy.extensions.access_loggers.grpc.v3 import als_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.type.matcher.v3 import metadata_pb2, string_pb2, value_pb2

LOG_NAME: Final = "tap"
GRPC_STATUS: Final = "grpc-status"
"""The trailer that says how a call of gRPC ended."""


@dataclass(frozen=True, slots=True)
class Tap(Feature):
    """The log; of calls of gRPC it has their status."""

    grpc: bool

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add it."""
        del terms
        manager.access_log.append(log(grpc=self.grpc))


@cache
def log(*, grpc: bool) -> accesslog_pb2.AccessLog:
    """Return the log; copied by whoever puts it into a message."""
    told = als_pb2.HttpGrpcAccessLogConfig(
        common_config=als_pb2.CommonGrpcAccessLogConfig(
            log_name=LOG_NAME,
            grpc_service=grpc_service_pb2.GrpcService(
                envoy_grpc=grpc_service_pb2.GrpcService.EnvoyGrpc(cluster_name=ADS_CLUSTER)
            ),
            transport_api_version=config_source_pb2.ApiVersion.V3,
        ),
        additional_response_trailers_to_log=[GRPC_STATUS] if grpc else [],
    )
    return accesslog_pb2.AccessLog(name=LOG_NAME, filter=_watched(), typed_config=packed(told))


def _watched() -> accesslog_pb2.AccessLogFilter:
    matcher = metadata_pb2.MetadataMatcher(
        filter=rbac.HTTP_FILTER,
        path=[metadata_pb2.MetadataMatcher.PathSegment(key=rbac.TAPPED)],
        value=value_pb2.ValueMatcher(string_match=string_pb2.StringMatcher(exact="allowed")),
    )
    noted = accesslog_pb2.MetadataFilter(matcher=matcher, match_if_key_not_found=BoolValue(value=False))
    return accesslog_pb2.AccessLogFilter(metadata_filter=noted)
