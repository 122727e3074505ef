"""Names of a gateway's clients for its backends, in the header `x-forwarded-client-cert`.

A header of the client itself is always removed, because the client could name anybody.
"""

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class ClientNames(Feature):
    """The names in a validated client certificate, in place of a header that the client has sent."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Set the header to hash, subject, URI and DNS names of the client certificate."""
        del terms
        manager.forward_client_cert_details = (
            hcm_pb2.HttpConnectionManager.ForwardClientCertDetails.SANITIZE_SET
        )
        manager.set_current_client_cert_details.subject.CopyFrom(BoolValue(value=True))
        manager.set_current_client_cert_details.uri = True
        manager.set_current_client_cert_details.dns = True
