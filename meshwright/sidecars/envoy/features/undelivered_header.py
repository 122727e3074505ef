"""That a request has not come to the application, told to the caller's proxy, which may try it elsewhere.

To the caller's proxy an application that has ended looks like one that answers 503: who cannot connect to it
is the proxy beside it. That one knows that nothing was delivered, and says so in a header of its own answer.
Of an application's answers the header is taken away: one that passes on what another has answered would let
a request be repeated that it has acted on.
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
"""Envoy's flag for a request whose connection could not be made; one that ended later is UC."""


class UndeliveredHeader(Feature):
    """The header, in what the proxy answers where it could not connect to its application."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the header to such answers."""
        del terms
        header = base_pb2.HeaderValueOption(
            header=base_pb2.HeaderValue(key=UNDELIVERED_HEADER, value="true"),
            append_action=base_pb2.HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
        )
        flags = accesslog_pb2.ResponseFlagFilter(flags=[_NOT_CONNECTED])
        found = accesslog_pb2.AccessLogFilter(response_flag_filter=flags)
        manager.local_reply_config.mappers.add(filter=found, headers_to_add=[header])

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Take the header from the application's answers; Envoy's own get it after that."""
        routes.response_headers_to_remove.append(UNDELIVERED_HEADER)
