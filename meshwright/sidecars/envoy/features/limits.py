"""How many headers a request may have, and of which size together; what has more is refused."""

from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class Limits(Feature):
    """The proxy's own limits, the same for all it takes and calls; those of answers are the clusters'."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Set both limits."""
        count = UInt32Value(value=terms.headers.count)
        manager.common_http_protocol_options.max_headers_count.CopyFrom(count)
        manager.max_request_headers_kb.CopyFrom(UInt32Value(value=terms.headers.kibibytes))
