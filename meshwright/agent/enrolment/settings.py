"""What the agent is told of enrolment, and what goes through the pipe to the program that asks."""

import enum
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain


@dataclass(frozen=True, slots=True)
class EnrolmentSettings:
    """Where to join and to renew, by what (a file with the proof), and whom to believe at first.

    `authority` is a file with roots; without it the pin of a join token says whom. `trust_domain` is the
    mesh's, where it was said.
    """

    join: HostPort | None = None
    kind: str = "join-token"
    proof: Path | None = None
    authority: Path | None = None
    renewal: HostPort | None = None
    trust_domain: TrustDomain | None = None


class EnrolmentRequestKind(enum.Enum):
    """What is asked for."""

    JOIN = enum.auto()
    RENEW = enum.auto()
    TRUST = enum.auto()


@dataclass(frozen=True, slots=True)
class Question:
    """What the program is asked: where, with the directory of the proxy's files.

    `proof` and `authority` (roots as PEM; empty: by the pins of the proof) are for joining. `trust_domain` is
    the mesh's, where it was told.
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
    """What came back: a certificate chain and roots as PEM, empty where there is nothing new.

    `renew_after` is when to renew what there is then, `ask_again` in how many seconds to ask whom to trust;
    `clock` is the server's. `trust_domain` is that by which it was believed.
    """

    chain: bytes
    authority: bytes
    renew_after: datetime
    clock: datetime
    ask_again: int = 0
    trust_domain: TrustDomain | None = None


@dataclass(frozen=True, slots=True)
class EnrolmentFailure:
    """Why there is nothing, in a sentence; `refused`: asking again will not help."""

    why: str
    refused: bool = False


Answer = EnrolmentResult | EnrolmentFailure
