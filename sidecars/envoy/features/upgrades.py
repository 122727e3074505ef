"""What a request may turn into: a WebSocket. All other upgrades are refused, and tunnels (CONNECT) too."""

from catalog.policy.proxy import MeshTerms
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from sidecars.envoy.features.feature import Feature


class Upgrades(Feature):
    """WebSocket upgrades pass."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Let them pass."""
        del terms
        manager.upgrade_configs.add(upgrade_type="websocket")
