"""What is seen on the way to a control plane: how far it led, and what stood there. Values only."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class PresentedCertificate:
    """What the proxy's own certificate says: whose it is, its serial, and from when to when it is valid."""

    name: str
    serial: str
    not_before: datetime
    not_after: datetime


@dataclass(frozen=True, slots=True)
class UnresolvedName:
    """The name leads to no address; `said` are the resolver's words."""

    said: str


@dataclass(frozen=True, slots=True)
class PortClosed:
    """The machine answers that nobody listens there."""

    address: str


@dataclass(frozen=True, slots=True)
class NoRoute:
    """The network has no way there, or something on it says no."""

    address: str
    said: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing came back: neither yes nor no, for so many seconds."""

    address: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PlaintextServer:
    """Who listens takes the connection, and answers with something else, or with nothing (`said` is empty).

    `closed`: it ended the connection, instead of waiting.
    """

    said: bytes
    closed: bool


@dataclass(frozen=True, slots=True)
class UntrustedServer:
    """The server's certificate is not below any authority in `ca.pem`; `said` are TLS's words."""

    names: tuple[str, ...]
    said: str


@dataclass(frozen=True, slots=True)
class MisnamedServer:
    """The server's certificate is of our authority, and is another's."""

    names: tuple[str, ...]
    expected: str


@dataclass(frozen=True, slots=True)
class ServerNotValid:
    """The server's certificate is of our authority, and not valid by the clock here."""

    not_before: datetime
    not_after: datetime


@dataclass(frozen=True, slots=True)
class ClosedAfterHandshake:
    """The server showed who it is, and ended the connection when it had seen who we are."""

    said: str = ""


@dataclass(frozen=True, slots=True)
class OtherProtocol:
    """A server of our authority that does not speak gRPC."""

    said: str


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The control plane answered a call: with a gRPC status, its words, and what it says in trailers.

    `reason` is its word for a refusal, or for having nothing to serve; `date` is its clock.
    """

    status: str
    said: str = ""
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
"""How far it led."""


@dataclass(frozen=True, slots=True)
class ReachObservation:
    """One look: where to, with which certificate, when by the clock here, and how far it led."""

    control_plane: HostPort
    shown: PresentedCertificate
    now: datetime
    way: Way

    @property
    def clock_ahead(self) -> timedelta | None:
        """Return by how much the clock here is ahead of the control plane's; None where it did not say."""
        if not isinstance(self.way, ServerAnswer) or self.way.date is None:
            return None
        return self.now - self.way.date
