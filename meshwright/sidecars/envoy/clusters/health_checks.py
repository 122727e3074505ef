"""Active health checks: each caller checks the endpoints of a cluster."""

from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.upstreams import HealthCheck
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import health_check_pb2
from protos.envoy.type.v3 import range_pb2

_COUNTED: Final = range_pb2.Int64Range(start=100, end=600)
"""Statuses that count towards the threshold.

By default Envoy marks an endpoint unhealthy at the first of them.
"""

_JITTER: Final = 10
"""Percentage by which an interval is randomly extended, so that callers do not check at the same time."""


def ask(cluster: cluster_pb2.Cluster, wanted: HealthCheck, host: str) -> None:
    """Add a health check to a cluster; HTTP requests use `host`.

    A check takes the same path as a call: over the mesh's TLS, with the caller's identity. A cluster without
    calls so far is checked once a minute (Envoy's `no_traffic_interval`). A successful check does not end an
    ejection early.
    """
    message = health_check_pb2.HealthCheck(
        timeout=duration(wanted.timeout),
        interval=duration(wanted.interval),
        interval_jitter_percent=_JITTER,
        unhealthy_threshold=UInt32Value(value=wanted.unhealthy),
        healthy_threshold=UInt32Value(value=wanted.healthy),
    )
    if wanted.grpc is not None:
        rpc = health_check_pb2.HealthCheck.GrpcHealthCheck(service_name=wanted.grpc, authority=host)
        message.grpc_health_check.CopyFrom(rpc)
    elif wanted.path is not None:
        message.http_health_check.CopyFrom(_request(wanted, wanted.path, host))
    else:
        message.tcp_health_check.SetInParent()
    cluster.health_checks.append(message)
    if cluster.HasField("outlier_detection"):
        cluster.outlier_detection.successful_active_health_check_uneject_host.value = False


def _request(wanted: HealthCheck, path: str, host: str) -> health_check_pb2.HealthCheck.HttpHealthCheck:
    well = [range_pb2.Int64Range(start=first, end=last + 1) for first, last in wanted.well]
    return health_check_pb2.HealthCheck.HttpHealthCheck(
        host=host, path=path, expected_statuses=well, retriable_statuses=[_COUNTED]
    )
