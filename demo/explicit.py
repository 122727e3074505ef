"""Explicit interception: loopback addresses and declared upstreams, without privileges."""

from collections.abc import Sequence
from pathlib import Path

from demo.interception import STATUS_PORT, Reservations, free_loopback
from demo.topology import ExplicitAddresses, Mode, Place


class ExplicitInterception:
    """Every place is a handful of loopback addresses; all runs as whoever started the demo."""

    mode = Mode.EXPLICIT
    control_plane = "127.0.0.1"

    def __init__(self) -> None:
        self._reserved = Reservations()
        self.addresses = ExplicitAddresses(free_loopback(self._reserved.take))

    async def prepare(self) -> None:
        """Do nothing: on Linux all of 127.0.0.0/8 is there."""

    async def name_services(self, place: Place, hosts: str) -> None:
        """Do nothing: programs are told addresses."""

    def status(self, place: Place) -> str:
        """Return an address that no other agent has."""
        return f"{self.addresses.status(place)}:{STATUS_PORT}"

    def sidecar(self, place: Place, argv: Sequence[str]) -> list[str]:  # noqa: ARG002 - all places are one
        """Return the command as it is."""
        return list(argv)

    def program(self, place: Place, argv: Sequence[str]) -> list[str]:  # noqa: ARG002 - as above
        """Return the command as it is."""
        return list(argv)

    def release(self) -> None:
        """Let others have the addresses."""
        self._reserved.release()

    def own(self, place: Place, directory: Path, *, sidecar: bool) -> None:
        """Do nothing: everything runs as one user."""
