"""Limits of a gateway's port for clients outside the mesh, from Envoy's "Configuring Envoy as an edge proxy".

Headers of a request must arrive within a time, and a stream without a byte is ended, so that slow clients do
not hold the proxy's memory. A stream with a byte now and then lives as long as both ends want: a long upload,
or a WebSocket with a heartbeat, is not cut.
"""

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.config.core.v3 import protocol_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_QUIET: Final = Duration(seconds=300)
"""Time without a byte after which a stream is ended."""
_HEADERS: Final = Duration(seconds=10)
"""Time for all headers of a request."""
_STREAMS: Final = 100
"""HTTP/2 streams of one connection at the same time."""
_STREAM_WINDOW: Final = 64 * 1024
_CONNECTION_WINDOW: Final = 1024 * 1024
"""Flow-control windows of HTTP/2, in bytes."""

_Common = protocol_pb2.HttpProtocolOptions


class EdgeLimits(Feature):
    """Limits for clients outside the mesh, whose address is the one of their connection."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Set the limits; the connection's address is appended to X-Forwarded-For."""
        del terms
        manager.use_remote_address.CopyFrom(BoolValue(value=True))
        manager.skip_xff_append = False
        manager.stream_idle_timeout.CopyFrom(_QUIET)
        manager.request_headers_timeout.CopyFrom(_HEADERS)
        # A header `x_forwarded_for` would be read as `x-forwarded-for` by some applications.
        manager.common_http_protocol_options.headers_with_underscores_action = (
            _Common.HeadersWithUnderscoresAction.REJECT_REQUEST
        )
        options = manager.http2_protocol_options
        options.max_concurrent_streams.CopyFrom(UInt32Value(value=_STREAMS))
        options.initial_stream_window_size.CopyFrom(UInt32Value(value=_STREAM_WINDOW))
        options.initial_connection_window_size.CopyFrom(UInt32Value(value=_CONNECTION_WINDOW))
        manager.strip_trailing_host_dot = True
