"""The Envoy driver: configuration by xDS."""

from typing import Final

from catalog.proxy import ProxyPolicy
from sidecars.driver import Capability, Piece
from sidecars.envoy.translate import pieces, resources
from xds.resource import Resource

ADS_PORT: Final = 15128


class EnvoyDriver:
    """Envoy 1.40; its control plane is this project's ADS server."""

    @property
    def name(self) -> str:
        """Return `envoy`."""
        return "envoy"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return all there are."""
        return frozenset(Capability)

    @property
    def proxy_server_port(self) -> int:
        """Return the ADS port."""
        return ADS_PORT

    def translate(self, policy: ProxyPolicy) -> tuple[Resource, ...]:
        """Return listeners, routes, clusters and endpoints; see `sidecars.envoy.translate`."""
        return resources(policy)

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece, ...]:
        """Return the same in pieces."""
        return pieces(policy)
