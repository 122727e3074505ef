"""External authorization of every request that policy admits.

The authorizer gets the request's headers and the caller, but not the body, because waiting for a body would
block streams. The authorizer can only narrow policy, because it is not called for a denied request.
"""

from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from catalog.policy.values.inbound import ExternalAuthorizer
from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.config.core.v3 import config_source_pb2, grpc_service_pb2
from protos.envoy.extensions.filters.http.ext_authz.v3 import ext_authz_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


@dataclass(frozen=True, slots=True)
class Authorization(Feature):
    """The authorizer of a port.

    The sidecar answers 403 if the authorizer refuses, or is late (unless configured to fail open).
    """

    authorizer: ExternalAuthorizer

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the external authorization filter."""
        del terms
        asked = self.authorizer.authorizer
        timeout = Duration()
        timeout.FromTimedelta(asked.timeout)
        service = grpc_service_pb2.GrpcService(
            envoy_grpc=grpc_service_pb2.GrpcService.EnvoyGrpc(
                cluster_name=names.authorizer_cluster(self.authorizer)
            ),
            timeout=timeout,
        )
        ext_authz = ext_authz_pb2.ExtAuthz(
            grpc_service=service,
            transport_api_version=config_source_pb2.ApiVersion.V3,
            failure_mode_allow=asked.fails_open,
            stat_prefix=asked.stat_prefix,
        )
        manager.http_filters.add(name="envoy.filters.http.ext_authz", typed_config=packed(ext_authz))
