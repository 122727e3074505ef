"""Access log of requests: on Envoy's standard output, unless a Telemetry object configures it."""

from dataclasses import dataclass

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.telemetry import access_log
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


@dataclass(frozen=True, slots=True)
class RequestLog(Feature):
    """The access log of requests.

    Connections have an access log too (`meshwright.sidecars.envoy.telemetry.access_log`).
    """

    inbound: bool

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the access log of requests."""
        logged = access_log.judged_requests if self.inbound else access_log.requests
        manager.access_log.extend(logged(terms.logs))
