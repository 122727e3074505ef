"""Settings of enrolment, and the input and output of the subprocess that makes enrolment requests."""

import enum
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain


@dataclass(frozen=True, slots=True)
class EnrolmentSettings:
    """Addresses for joining and renewal, the file with the proof, and the initial trust.

    Without addresses in `join` or `renewal` the agent does not join or does not renew.
    `authority` is a file with roots; otherwise the pin in a join token verifies the server. `trust_domain` is
    the mesh's, if given.
    """

    join: tuple[HostPort, ...] = ()
    kind: str = "join-token"
    proof: Path | None = None
    authority: Path | None = None
    renewal: tuple[HostPort, ...] = ()
    trust_domain: TrustDomain | None = None


class EnrolmentRequestKind(enum.Enum):
    """Kinds of enrolment requests: join the mesh, renew the certificate, fetch the trusted roots."""

    JOIN = enum.auto()
    RENEW = enum.auto()
    TRUST = enum.auto()


@dataclass(frozen=True, slots=True)
class Question:
    """Input of the program: the server's address, and the directory of the proxy's files.

    `proof` and `authority` (roots as PEM; empty: use the pins in the proof) are for joining. `trust_domain`
    is the mesh's, if given.
    """

    asking: EnrolmentRequestKind
    at: HostPort
    directory: Path
    kind: str = ""
    proof: bytes = field(default=b"", repr=False)
    authority: bytes = field(default=b"", repr=False)
    trust_domain: TrustDomain | None = None


@dataclass(frozen=True, slots=True)
class EnrolmentResult:
    """A certificate chain and roots as PEM; empty if there is nothing new.

    `renew_after` is the time of the next renewal, `ask_again` the seconds until the next request for roots,
    and `clock` the server's time. `trust_domain` is the trust domain of the verified server.
    """

    chain: bytes
    authority: bytes
    renew_after: datetime
    clock: datetime
    ask_again: int = 0
    trust_domain: TrustDomain | None = None


@dataclass(frozen=True, slots=True)
class EnrolmentFailure:
    """The reason for a failure in one sentence; `refused` means that a retry will not help."""

    why: str
    refused: bool = False


Answer = EnrolmentResult | EnrolmentFailure
