"""Observations on the way to a control plane: the last step reached, and the result. Values only."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class PresentedCertificate:
    """The proxy's own certificate: name, serial number, and period of validity."""

    name: str
    serial: str
    not_before: datetime
    not_after: datetime


@dataclass(frozen=True, slots=True)
class UnresolvedName:
    """The name has no address; `message` is the resolver's, for example `Name or service not known`."""

    message: str


@dataclass(frozen=True, slots=True)
class PortClosed:
    """The machine refuses the connection, because nothing listens on the port."""

    address: str


@dataclass(frozen=True, slots=True)
class NoRoute:
    """The network lacks a route, or refuses the connection."""

    address: str
    message: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The server did not answer for this many seconds."""

    address: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PlaintextServer:
    """A server accepts the connection, but answers with another protocol, or not at all (`received` empty).

    `closed`: the server closed the connection instead of waiting.
    """

    received: bytes
    closed: bool


@dataclass(frozen=True, slots=True)
class UntrustedServer:
    """The server's certificate is not from a CA in `ca.pem`; `message` is the message of TLS."""

    names: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class MisnamedServer:
    """The server's certificate is from our CA, but for another name."""

    names: tuple[str, ...]
    expected: str


@dataclass(frozen=True, slots=True)
class ServerNotValid:
    """The server's certificate is from our CA, but not valid by the local clock."""

    not_before: datetime
    not_after: datetime


@dataclass(frozen=True, slots=True)
class ClosedAfterHandshake:
    """The server proved its identity, and closed the connection after reading our certificate."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class OtherProtocol:
    """A server with a certificate of our CA, but without gRPC."""

    message: str


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The control plane answered a call, with a gRPC status, a message and trailers.

    `reason` is the control plane's word for a refusal or a missing configuration; `date` is the control
    plane's clock.
    """

    status: str
    message: str = ""
    reason: str = ""
    date: datetime | None = None


Way = (
    UnresolvedName
    | PortClosed
    | NoRoute
    | NoAnswer
    | PlaintextServer
    | UntrustedServer
    | MisnamedServer
    | ServerNotValid
    | ClosedAfterHandshake
    | OtherProtocol
    | ServerAnswer
)
"""The last step reached."""


@dataclass(frozen=True, slots=True)
class ReachObservation:
    """A diagnosis of a connection: the server's address, own certificate, local time, last step reached."""

    control_plane: HostPort
    shown: PresentedCertificate
    now: datetime
    way: Way

    @property
    def clock_ahead(self) -> timedelta | None:
        """Return how far the local clock is ahead of the control plane's.

        None without a time in the answer.
        """
        if not isinstance(self.way, ServerAnswer) or self.way.date is None:
            return None
        return self.now - self.way.date
