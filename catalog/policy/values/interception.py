"""How traffic comes to a proxy, and the addresses at which it listens."""

import enum
from dataclasses import dataclass

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import IpAddress, Port


class InterceptionKind(enum.StrEnum):
    """How traffic comes to the proxy: redirected by the kernel, or because the proxy binds the addresses."""

    TRANSPARENT = "transparent"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True, order=True)
class SocketAddress:
    """An address and a port."""

    address: IpAddress
    port: Port

    def __str__(self) -> str:
        return str(HostPort(self.address, self.port))
