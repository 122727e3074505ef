"""Explicit interception: loopback addresses and declared upstreams, without privileges."""

from collections.abc import Sequence
from pathlib import Path

from demo.interception import STATUS_PORT, Reservations, free_loopback
from demo.topology import ExplicitAddresses, Mode, Place


class ExplicitInterception:
    """Interception by loopback addresses; all processes run as the user of the demo."""

    mode = Mode.EXPLICIT
    control_plane = "127.0.0.1"

    def __init__(self) -> None:
        self._reserved = Reservations()
        self.addresses = ExplicitAddresses(free_loopback(self._reserved.take))

    async def prepare(self) -> None:
        """Do nothing, because Linux accepts all addresses of 127.0.0.0/8 without configuration."""

    async def name_services(self, place: Place, hosts: str) -> None:
        """Do not change any hosts file, because programs are configured with addresses."""

    def status(self, place: Place) -> str:
        """Return HOST:PORT of the agent's own server, on a loopback address of this workload alone."""
        return f"{self.addresses.status(place)}:{STATUS_PORT}"

    def sidecar(self, place: Place, argv: Sequence[str]) -> list[str]:  # noqa: ARG002 - all places are one
        """Return the command of a sidecar unchanged, because all processes share one network."""
        return list(argv)

    def program(self, place: Place, argv: Sequence[str]) -> list[str]:  # noqa: ARG002 - as above
        """Return the command of a program unchanged, because all processes share one network."""
        return list(argv)

    def release(self) -> None:
        """Release the reserved loopback addresses."""
        self._reserved.release()

    def own(self, place: Place, directory: Path, *, sidecar: bool) -> None:
        """Leave the owner of files unchanged, because all processes run as one user."""
