"""Outlier detection and keepalive of clusters of peers; docs/policy/resilience.md has the reasons."""

from datetime import timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.resilience import Keepalive, OutlierDetection, Resilience
from meshwright.mesh.policies.upstreams import OutlierDetectionOverride
from protos.envoy.config.cluster.v3 import cluster_pb2, outlier_detection_pb2
from protos.envoy.config.core.v3 import address_pb2, protocol_pb2, socket_option_pb2

_IPPROTO_TCP: Final = 6
_TCP_USER_TIMEOUT: Final = 18
"""Constants of Linux, equal on all architectures."""

_LOOKED_AT: Final = timedelta(seconds=5)
"""Interval at which Envoy ends ejections; ejections begin at once."""

_UNSAID: Final = 5
"""Envoy's default number of consecutive gateway and connection failures."""

_NEVER: Final = UInt32Value(value=0)
_ALWAYS: Final = UInt32Value(value=100)


def peers(
    resilience: Resilience, ejecting: OutlierDetectionOverride | None, *, as_called: bool
) -> cluster_pb2.Cluster:
    """Return the fields of a cluster of peers.

    Endpoints are not ejected if calls are for one endpoint (`as_called`), because the calls cannot go
    elsewhere.
    """
    message = cluster_pb2.Cluster()
    outliers = resilience.outliers if ejecting is None else ejecting.over(resilience.outliers)
    if outliers is not None and not as_called:
        message.outlier_detection.CopyFrom(_outliers(outliers))
    if resilience.keepalive is not None:
        _keep_alive(message, resilience.keepalive)
    return message


def pings(keepalive: Keepalive) -> protocol_pb2.KeepaliveSettings:
    """Return HTTP/2 keepalive settings, which check the peer's process as well as the machine."""
    return protocol_pb2.KeepaliveSettings(
        interval=duration(keepalive.silence), timeout=duration(keepalive.silence)
    )


def duration(length: timedelta) -> Duration:
    """Return a duration as a protobuf message."""
    result = Duration()
    result.FromTimedelta(length)
    return result


def _outliers(wanted: OutlierDetection) -> outlier_detection_pb2.OutlierDetection:
    """Return the outlier detection, without Envoy's defaults of counting status 500 and comparing endpoints.

    Values equal to Envoy's defaults are left out, because the message is in every cluster of every caller.
    """
    counted = None if wanted.failures == _UNSAID else UInt32Value(value=wanted.failures)
    message = outlier_detection_pb2.OutlierDetection(
        interval=duration(_LOOKED_AT),
        base_ejection_time=duration(wanted.ejected_for),
        max_ejection_percent=UInt32Value(value=wanted.most_percent),
        # Envoy counts failed connections apart from responses only with this field, and ignores
        # `consecutive_local_origin_failure` without it.
        split_external_local_origin_errors=True,
        consecutive_gateway_failure=counted,
        enforcing_consecutive_gateway_failure=_ALWAYS,
        consecutive_local_origin_failure=counted,
        enforcing_consecutive_5xx=_NEVER,
        enforcing_success_rate=_NEVER,
        enforcing_local_origin_success_rate=_NEVER,
    )
    if wanted.server_errors is not None:
        message.consecutive_5xx.CopyFrom(UInt32Value(value=wanted.server_errors))
        message.ClearField("enforcing_consecutive_5xx")
    return message


def _keep_alive(message: cluster_pb2.Cluster, keepalive: Keepalive) -> None:
    """Close a silent connection: Linux probes an idle one, and limits the wait for acknowledgements.

    Without TCP_USER_TIMEOUT unacknowledged data is retransmitted for about 15 minutes; TCP keepalive alone
    covers only idle connections.
    """
    silence = int(keepalive.silence.total_seconds())
    message.upstream_connection_options.tcp_keepalive.CopyFrom(
        address_pb2.TcpKeepalive(
            keepalive_probes=UInt32Value(value=2),
            keepalive_time=UInt32Value(value=silence // 2),
            keepalive_interval=UInt32Value(value=silence // 4),
        )
    )
    message.upstream_bind_config.socket_options.append(
        socket_option_pb2.SocketOption(
            level=_IPPROTO_TCP,
            name=_TCP_USER_TIMEOUT,
            int_value=silence * 1000,
            state=socket_option_pb2.SocketOption.SocketState.STATE_PREBIND,
        )
    )
