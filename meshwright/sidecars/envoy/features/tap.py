"""Watched requests, reported to the control plane one by one.

Every inbound connection manager contains this log, because a later addition would end connections. The log
reports only requests recorded by the RBAC filter (`meshwright.sidecars.envoy.rules.rbac.watched`), therefore
only if the route configuration selects some. Envoy opens no stream before the first report.
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
"""Trailer with the status of a gRPC call."""


@dataclass(frozen=True, slots=True)
class Tap(Feature):
    """The access log of watched requests; with `grpc` the log has the gRPC status."""

    grpc: bool

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the access log of watched requests."""
        del terms
        manager.access_log.append(log(grpc=self.grpc))


@cache
def log(*, grpc: bool) -> accesslog_pb2.AccessLog:
    """Return the access log of watched requests, which must be copied into a message."""
    log_config = als_pb2.HttpGrpcAccessLogConfig(
        common_config=als_pb2.CommonGrpcAccessLogConfig(
            log_name=LOG_NAME,
            grpc_service=grpc_service_pb2.GrpcService(
                envoy_grpc=grpc_service_pb2.GrpcService.EnvoyGrpc(cluster_name=ADS_CLUSTER)
            ),
            transport_api_version=config_source_pb2.ApiVersion.V3,
        ),
        additional_response_trailers_to_log=[GRPC_STATUS] if grpc else [],
    )
    return accesslog_pb2.AccessLog(name=LOG_NAME, filter=_watched(), typed_config=packed(log_config))


def _watched() -> accesslog_pb2.AccessLogFilter:
    matcher = metadata_pb2.MetadataMatcher(
        filter=rbac.HTTP_FILTER,
        path=[metadata_pb2.MetadataMatcher.PathSegment(key=rbac.TAPPED)],
        value=value_pb2.ValueMatcher(string_match=string_pb2.StringMatcher(exact="allowed")),
    )
    noted = accesslog_pb2.MetadataFilter(matcher=matcher, match_if_key_not_found=BoolValue(value=False))
    return accesslog_pb2.AccessLogFilter(metadata_filter=noted)
