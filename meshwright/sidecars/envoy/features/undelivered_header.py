"""Header for the caller's proxy: the request did not reach the application and may be retried.

To the caller's proxy a stopped application looks like an application that answers 503, because only the proxy
beside the application sees the failed connection. The latter proxy knows that the request was not delivered,
and adds the header to the answer. The header is removed from the application's answers: an application that
forwards another's answer would otherwise cause a retry of a request on which it has acted.
"""

from typing import Final

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.layout import UNDELIVERED_HEADER
from protos.envoy.config.accesslog.v3 import accesslog_pb2
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_NOT_CONNECTED: Final = "UF"
"""Envoy's flag for a request whose connection could not be made. A connection that ended later has UC."""


class UndeliveredHeader(Feature):
    """The header in a proxy's answers to requests for which the application could not be connected."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the header to the proxy's answers after a failed connection to the application."""
        del terms
        header = base_pb2.HeaderValueOption(
            header=base_pb2.HeaderValue(key=UNDELIVERED_HEADER, value="true"),
            append_action=base_pb2.HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
        )
        flags = accesslog_pb2.ResponseFlagFilter(flags=[_NOT_CONNECTED])
        access_log_filter = accesslog_pb2.AccessLogFilter(response_flag_filter=flags)
        manager.local_reply_config.mappers.add(filter=access_log_filter, headers_to_add=[header])

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Remove the header from the application's answers; Envoy adds the proxy's own afterwards."""
        routes.response_headers_to_remove.append(UNDELIVERED_HEADER)
