"""Interception of traffic by a proxy, and the addresses at which the proxy listens."""

import enum
from dataclasses import dataclass

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import IpAddress, Port


class InterceptionKind(enum.StrEnum):
    """Way of traffic to the proxy: redirected by the kernel, or by the addresses that the proxy binds.

    With EDGE these are the addresses of a gateway, and there is no application.
    """

    TRANSPARENT = "transparent"
    EXPLICIT = "explicit"
    EDGE = "edge"


@dataclass(frozen=True, slots=True, order=True)
class SocketAddress:
    """An address and a port."""

    address: IpAddress
    port: Port

    def __str__(self) -> str:
        return str(HostPort(self.address, self.port))
