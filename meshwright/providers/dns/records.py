"""Questions to the DNS, the answers to them, and what is known of each question. Values only."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.names import IpAddress, Port
from meshwright.providers.moments import Moment


class RecordType(enum.StrEnum):
    """The types of records that are asked for."""

    A = "A"
    AAAA = "AAAA"
    SRV = "SRV"


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """A name and a type of records."""

    name: str
    record: RecordType

    def __str__(self) -> str:
        return f"{self.name} {self.record}"


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One SRV record (RFC 2782): a host's name and port; of several the lowest priority comes first."""

    priority: int
    weight: int
    port: Port
    name: str


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """A good answer, sorted; `ttl` is in seconds, the shortest of its CNAME chain.

    Without records, there is no such name, or nothing of that type; `ttl` is then the negative one
    (RFC 2308). `nameserver` is who said so.
    """

    ttl: float
    addresses: tuple[IpAddress, ...] = ()
    targets: tuple[Target, ...] = ()
    nameserver: str = ""


@dataclass(frozen=True, slots=True)
class DnsFailure:
    """No answer that says anything; `reason` is the same text as long as the cause is the same."""

    reason: str


@dataclass(frozen=True, slots=True)
class QuestionState:
    """What is known of one question: its last good answer, when to ask again, and why there is no newer one.

    `due` is for the schedule, `answered` and `error_since` are dates to be shown.

    `answered` is None as long as there was no good answer. `missing` counts the answers without records
    since there were some; 0 where there never were any. `nameserver` said these records first: that another
    one repeats them is no news.
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
