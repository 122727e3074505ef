"""Limits of a gateway's listener for clients outside the mesh.

The defaults are those of Envoy's "Configuring Envoy as an edge proxy".

Headers of a request must arrive within a time, and a stream without a byte is ended, so that slow clients do
not hold the proxy's memory. A stream with a byte now and then lives as long as both ends want: a long upload,
or a WebSocket with a heartbeat, is not cut.

The client's address is that of its connection, or, behind trusted proxies, the one that they have appended to
X-Forwarded-For. All clients count as external, also those in private networks, because Envoy would otherwise
take settings such as `x-envoy-upstream-rq-timeout-ms` from the headers of a request.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.policies.client_traffic import KIBIBYTE, ClientHttp2, ClientSettings, ClientSlashes
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.config.core.v3 import protocol_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_IDLE: Final = timedelta(hours=1)
"""Time without a request after which a connection is closed, as in Envoy's guide."""

_NOBODY: Final = "255.255.255.255"
"""Address that no client can have: Envoy reads an empty list of internal addresses as its own default."""

_Common = protocol_pb2.HttpProtocolOptions
_Manager = hcm_pb2.HttpConnectionManager
_Action = _Manager.PathWithEscapedSlashesAction
_SLASHES: Final = {
    ClientSlashes.REJECT: _Action.REJECT_REQUEST,
    ClientSlashes.KEEP: _Action.KEEP_UNCHANGED,
    ClientSlashes.REDIRECT: _Action.UNESCAPE_AND_REDIRECT,
    ClientSlashes.FORWARD: _Action.UNESCAPE_AND_FORWARD,
}


@dataclass(frozen=True, slots=True)
class EdgeLimits(Feature):
    """Limits for clients outside the mesh; applied after the features of all proxies."""

    settings: ClientSettings

    def to_manager(self, manager: _Manager, terms: MeshTerms) -> None:
        """Set the limits."""
        del terms
        _set_address(manager, self.settings.trusted_hops)
        _set_headers(manager, self.settings)
        _set_times(manager, self.settings)
        _set_http2(manager.http2_protocol_options, self.settings.http2)
        manager.normalize_path.CopyFrom(BoolValue(value=True))
        manager.merge_slashes = self.settings.merge_slashes
        manager.path_with_escaped_slashes_action = _SLASHES[self.settings.slashes]


def _set_address(manager: _Manager, trusted_hops: int) -> None:
    """Append the connection's address to X-Forwarded-For, and trust the last `trusted_hops` before it."""
    manager.use_remote_address.CopyFrom(BoolValue(value=True))
    manager.skip_xff_append = False
    manager.xff_num_trusted_hops = trusted_hops
    manager.internal_address_config.cidr_ranges.add(address_prefix=_NOBODY, prefix_len=UInt32Value(value=32))
    manager.preserve_external_request_id = True


def _set_headers(manager: _Manager, settings: ClientSettings) -> None:
    options = manager.common_http_protocol_options
    # A header `x_forwarded_for` would be read as `x-forwarded-for` by some applications.
    options.headers_with_underscores_action = _Common.HeadersWithUnderscoresAction.REJECT_REQUEST
    if settings.header_count is not None:
        options.max_headers_count.CopyFrom(UInt32Value(value=settings.header_count))
    if settings.header_bytes is not None:
        kibibytes = -(-settings.header_bytes // KIBIBYTE)
        manager.max_request_headers_kb.CopyFrom(UInt32Value(value=kibibytes))
    manager.strip_trailing_host_dot = True


def _set_times(manager: _Manager, settings: ClientSettings) -> None:
    times = settings.timeouts
    idle = _IDLE if times.idle is None else times.idle
    manager.common_http_protocol_options.idle_timeout.CopyFrom(duration(idle))
    manager.stream_idle_timeout.CopyFrom(duration(times.stream_idle))
    manager.request_headers_timeout.CopyFrom(duration(times.request_headers))
    manager.request_timeout.CopyFrom(duration(times.request))


def _set_http2(options: protocol_pb2.Http2ProtocolOptions, limits: ClientHttp2) -> None:
    options.max_concurrent_streams.CopyFrom(UInt32Value(value=limits.streams))
    options.initial_stream_window_size.CopyFrom(UInt32Value(value=limits.stream_window))
    options.initial_connection_window_size.CopyFrom(UInt32Value(value=limits.connection_window))
