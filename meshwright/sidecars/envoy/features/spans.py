"""Tracing: a span of each request at both ends of a call, sent to a collector.

Applications must forward the headers that join spans (B3 such as `x-b3-traceid`, or with OTLP the W3C's
`traceparent`) from a request to all requests caused by it. X-Request-Id is not changed; by default Envoy
would encode the sampling decision there.
"""

from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.config import Tracing, TracingProtocol
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.config.core.v3 import extension_pb2, grpc_service_pb2
from protos.envoy.config.trace.v3 import http_tracer_pb2, opentelemetry_pb2, zipkin_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.extensions.request_id.uuid.v3 import uuid_pb2
from protos.envoy.extensions.tracers.opentelemetry.resource_detectors.v3 import (
    environment_resource_detector_pb2 as detector_pb2,
)
from protos.envoy.type.v3 import percent_pb2

_ALL: Final = percent_pb2.Percent(value=100)
_WHO_TELLS: Final = extension_pb2.TypedExtensionConfig(
    name="envoy.tracers.opentelemetry.resource_detectors.environment",
    typed_config=packed(detector_pb2.EnvironmentResourceDetectorConfig()),
)
"""Environment variable with the service name, so that listeners are equal (`agent.envoy.command`)."""


class Spans(Feature):
    """Tracing: spans of requests, sent to the mesh's collector, if any."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Enable spans, if the mesh has a collector."""
        tracing = terms.tracing
        if tracing is None:
            return
        manager.tracing.provider.CopyFrom(_provider(tracing))
        manager.tracing.client_sampling.CopyFrom(_ALL)
        manager.tracing.random_sampling.value = tracing.percent
        manager.tracing.overall_sampling.CopyFrom(_ALL)
        kept = uuid_pb2.UuidRequestIdConfig(pack_trace_reason=BoolValue(value=False))
        manager.request_id_extension.typed_config.CopyFrom(packed(kept))


def _provider(tracing: Tracing) -> http_tracer_pb2.Tracing.Http:
    match tracing.protocol:
        case TracingProtocol.ZIPKIN:
            zipkin = zipkin_pb2.ZipkinConfig(
                collector_cluster=names.TRACING_CLUSTER,
                collector_endpoint=tracing.endpoint,
                collector_endpoint_version=zipkin_pb2.ZipkinConfig.CollectorEndpointVersion.HTTP_JSON,
                collector_hostname=tracing.collector.host,
                shared_span_context=BoolValue(value=False),
            )
            return http_tracer_pb2.Tracing.Http(name="envoy.tracers.zipkin", typed_config=packed(zipkin))
        case TracingProtocol.OTLP:
            envoy = grpc_service_pb2.GrpcService.EnvoyGrpc(cluster_name=names.TRACING_CLUSTER)
            otlp = opentelemetry_pb2.OpenTelemetryConfig(
                grpc_service=grpc_service_pb2.GrpcService(envoy_grpc=envoy),
                resource_detectors=[_WHO_TELLS],
            )
            return http_tracer_pb2.Tracing.Http(name="envoy.tracers.opentelemetry", typed_config=packed(otlp))
