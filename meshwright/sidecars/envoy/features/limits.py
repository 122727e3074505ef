"""Limits on the number and total size of a request's headers; requests beyond them are refused."""

from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class Limits(Feature):
    """The proxy's limits on headers of requests; limits on headers of responses are part of clusters."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Set the limits on the number of request headers and on their size in KiB."""
        count = UInt32Value(value=terms.headers.count)
        manager.common_http_protocol_options.max_headers_count.CopyFrom(count)
        manager.max_request_headers_kb.CopyFrom(UInt32Value(value=terms.headers.kibibytes))
