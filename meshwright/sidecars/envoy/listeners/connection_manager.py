"""HTTP connection managers, the last filter of every HTTP filter chain.

The proxy is transparent: it adds no Server, Via or x-envoy headers, and does not change X-Forwarded-For and
X-Request-Id (a caller is identified by certificate, not by a header). Streams have no idle timeout, because a
quiet stream is not broken. Interim responses (100, 102, 103) come from the application: by default Envoy
would answer `Expect: 100-continue` before the application has seen the request.
"""

from functools import lru_cache
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.service import ServiceKey, Upstream
from meshwright.sidecars.envoy.common_messages import OVER_ADS, packed
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.config.core.v3 import protocol_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

ALIKE: Final = 256
"""Number of cached kinds of connection managers; with equal terms and features all are alike."""

_HCM: Final = "envoy.filters.network.http_connection_manager"
_Manager = hcm_pb2.HttpConnectionManager


def connection_manager(
    route: str, terms: MeshTerms, host: Upstream | None, features: tuple[Feature, ...]
) -> listener_components_pb2.Filter:
    """Return the connection manager of a route configuration, with these features.

    An HTTP/1.0 request without a host is for `host`; if `host` is None, the answer is 400.
    """
    manager = _Manager()
    # A copy, because the cached message belongs to all managers with these features.
    manager.CopyFrom(_nameless(terms, features))
    manager.stat_prefix = route
    manager.rds.route_config_name = route
    if host is not None:
        manager.http_protocol_options.default_host_for_http_10 = _host(host)
    return listener_components_pb2.Filter(name=_HCM, typed_config=packed(manager))


@lru_cache(ALIKE)
def _nameless(terms: MeshTerms, features: tuple[Feature, ...]) -> _Manager:
    """Return the common part of connection managers with these features, to be copied into each."""
    manager = _Manager(
        codec_type=_Manager.CodecType.AUTO,
        rds=hcm_pb2.Rds(config_source=OVER_ADS),
        server_header_transformation=_Manager.ServerHeaderTransformation.PASS_THROUGH,
        use_remote_address=BoolValue(value=False),
        skip_xff_append=True,
        stream_idle_timeout=Duration(),
        proxy_100_continue=True,
        http_protocol_options=protocol_pb2.Http1ProtocolOptions(accept_http_10=True),
    )
    for feature in features:
        feature.to_manager(manager, terms)
    return manager


def _host(upstream: Upstream) -> str:
    return f"{upstream.name}.{upstream.namespace}" if isinstance(upstream, ServiceKey) else upstream.name
