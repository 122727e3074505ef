"""A line for each request, on Envoy's standard output."""

from catalog.policy.proxy import ProxyPolicy
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from sidecars.envoy import access_log
from sidecars.envoy.features.feature import Feature


class RequestLog(Feature):
    """The access log; connections have one as well (`sidecars.envoy.access_log`)."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, proxy: ProxyPolicy) -> None:
        """Add the log."""
        del proxy
        manager.access_log.append(access_log.requests())
