"""DNS questions, answers, and the state of each question, as values."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.names import IpAddress, Port
from meshwright.providers.moments import Moment


class RecordType(enum.StrEnum):
    """Types of DNS records queried by the control plane."""

    A = "A"
    AAAA = "AAAA"
    SRV = "SRV"


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """A DNS question: a name and a type of records."""

    name: str
    record: RecordType

    def __str__(self) -> str:
        return f"{self.name} {self.record}"


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One SRV record (RFC 2782): a host's name and port; the lowest priority is preferred."""

    priority: int
    weight: int
    port: Port
    name: str


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """A good answer, sorted; `ttl` is in seconds, the shortest of the CNAME chain.

    An answer without records means a missing name, or a name without records of the type; `ttl` is then the
    negative TTL (RFC 2308). `nameserver` is the source of the answer.
    """

    ttl: float
    addresses: tuple[IpAddress, ...] = ()
    targets: tuple[Target, ...] = ()
    nameserver: str = ""


@dataclass(frozen=True, slots=True)
class DnsFailure:
    """Failure of a query; `reason` is the same text as long as the cause is the same."""

    reason: str


@dataclass(frozen=True, slots=True)
class QuestionState:
    """State of one question: the last good answer, the time of the next query, and the present error.

    `due` is for the schedule; `answered` and `error_since` are dates for people. `answered` is None until the
    first good answer. `missing` is the number of empty answers since the last records, 0 if the name never
    had records. `nameserver` is the first one with these records; the same records from another one change
    nothing.
    """

    due: Moment
    answered: datetime | None = None
    addresses: tuple[IpAddress, ...] = ()
    targets: tuple[Target, ...] = ()
    missing: int = 0
    failures: int = 0
    error: str = ""
    error_since: datetime | None = None
    nameserver: str = ""
