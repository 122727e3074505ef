"""One proxy certificate as a ledger has it, and what may become of it. Values only."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from mesh.identity import ProxyName
from mesh.names import ProxyUuid


class LedgerState(enum.StrEnum):
    """How far a certificate has come: issued, then claimed by a first connection, then revoked."""

    ISSUED = "issued"
    CLAIMED = "claimed"
    REVOKED = "revoked"


class Stamp(enum.StrEnum):
    """What becomes of a certificate, by its field; each is set once, in this order."""

    CLAIMED = "claimed_at"
    ADMITTED = "admitted_at"
    REVOKED = "revoked_at"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One proxy certificate. Times are whole seconds in UTC.

    `claimed_at` is the first stream opened with it, `admitted_at` the first listeners acknowledged: both
    are remembered for good, whatever becomes of the connection.
    """

    serial: str
    common_name: str
    uuid: ProxyUuid
    issued_at: datetime
    not_after: datetime
    claimed_at: datetime | None = None
    revoked_at: datetime | None = None
    admitted_at: datetime | None = None

    @classmethod
    def issued(cls, serial: str, name: ProxyName, now: datetime, not_after: datetime) -> Self:
        """Return the entry of a certificate issued now."""
        return cls(serial, str(name), name.uuid, now.replace(microsecond=0), not_after)

    @property
    def state(self) -> LedgerState:
        """Return its state; a revoked one is revoked whether it was claimed before or not."""
        if self.revoked_at is not None:
            return LedgerState.REVOKED
        return LedgerState.ISSUED if self.claimed_at is None else LedgerState.CLAIMED

    def takes(self, stamp: Stamp) -> bool:
        """Say whether a stamp is still to be set: each is set once, and none on a revoked certificate."""
        return self.revoked_at is None and getattr(self, stamp) is None

    def stamped(self, noted: Mapping[Stamp, datetime]) -> "LedgerEntry":
        """Return the entry with these stamps, as far as it takes them."""
        if self.revoked_at is not None:
            return self
        return replace(
            self,
            claimed_at=self.claimed_at or noted.get(Stamp.CLAIMED),
            admitted_at=self.admitted_at or noted.get(Stamp.ADMITTED),
            revoked_at=noted.get(Stamp.REVOKED),
        )
