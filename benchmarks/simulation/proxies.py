"""A sidecar in simulated time, with a certificate and the acknowledged snapshot."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from certs.ledger.entry import LedgerEntry
from meshwright.mesh.identity import ProxyName
from xds.protocol.resources.snapshot import Snapshot


@dataclass(eq=False, slots=True)
class Proxy:
    """The proxy of one Pod.

    `held` is the last acknowledged snapshot, and `acked_at` the time of the first acknowledgement, in seconds
    of the simulation. `is_gone` is True after the end of the Pod.
    """

    number: int
    service: int
    name: ProxyName = field(init=False)
    held: Snapshot | None = None
    acked_at: float | None = None
    has_certificate: bool = False
    is_gone: bool = False
    tries: int = 0

    def __post_init__(self) -> None:
        self.name = ProxyName.parse(f"p{self.number:x}.svc-{self.service}.ns-{self.service % 10}")

    @property
    def serial(self) -> str:
        """Return the serial of the proxy's certificate."""
        return f"{self.number:032x}"

    def certificate(self, now: datetime) -> LedgerEntry:
        """Return the ledger's entry of a new certificate."""
        joined_by = f"kubernetes Pod ns-{self.service % 10}/pod-{self.number} ({self.number:032x})"
        return LedgerEntry.issued(self.serial, self.name, now, now + timedelta(days=90), joined_by=joined_by)
