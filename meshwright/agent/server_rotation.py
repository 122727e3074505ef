"""Order in which an agent tries the servers of one service of the control plane."""

import random

from meshwright.mesh.host_port import HostPort


class ServerRotation:
    """Addresses of one service, beginning with the server that answered last.

    An agent stays with a server that answers, because a server remembers some requests, for example which
    roots an agent has confirmed. The first server is `first`, by default a random one, so that agents are
    spread over the servers.
    """

    def __init__(self, addresses: tuple[HostPort, ...], first: int | None = None) -> None:
        self._addresses = addresses
        # The choice protects nothing, so it needs no secure source.
        self._first = random.randrange(max(1, len(addresses))) if first is None else first  # noqa: S311

    def __bool__(self) -> bool:
        """Return whether there is any address."""
        return bool(self._addresses)

    def order(self) -> tuple[HostPort, ...]:
        """Return all addresses in the order of trying."""
        return self._addresses[self._first :] + self._addresses[: self._first]

    def answered(self, address: HostPort) -> None:
        """Begin with this address from now on."""
        self._first = self._addresses.index(address)
