"""One proxy certificate as a ledger has it, and what may become of it. Values only."""

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid

SEEN_EVERY: Final = timedelta(minutes=15)
"""So often at most it is noted that a certificate is in use: each note is a write, and proxies are many."""

MOST_WORDS: Final = 200
"""Characters of what is noted with a stamp: a row that grows must find room on a full disk as well."""

_DIGITS: Final = 32


class LedgerState(enum.StrEnum):
    """How far a certificate has come: issued, then claimed by a first connection, then revoked."""

    ISSUED = "issued"
    CLAIMED = "claimed"
    REVOKED = "revoked"


class Stamp(enum.StrEnum):
    """What becomes of a certificate, by its field, in this order; each is set once, SEEN again and again."""

    CLAIMED = "claimed_at"
    ADMITTED = "admitted_at"
    SEEN = "seen_at"
    REVOKED = "revoked_at"


@dataclass(frozen=True, slots=True)
class StampDetail:
    """What a stamp says: when, and in words from where a certificate was claimed, or why it is revoked."""

    at: datetime
    words: str = ""

    @classmethod
    def of(cls, at: datetime, words: str = "") -> Self:
        """Return it as it is kept: whole seconds, one line, of MOST_WORDS at most."""
        return cls(at.replace(microsecond=0), one_line(words))


def one_line(words: str) -> str:
    """Return words as they are kept: one line, of MOST_WORDS at most."""
    return "".join(each if each.isprintable() else " " for each in words).strip()[:MOST_WORDS]


def proof_line(shown: str) -> str:
    """Return by what somebody has joined as it is kept: one line, which is still nobody else's.

    What it takes something of ends with a digest of all that was shown.
    """
    line = one_line(shown)
    if line == shown:
        return line
    digest = hashlib.sha256(shown.encode(errors="backslashreplace")).hexdigest()[:_DIGITS]
    return f"{line[: MOST_WORDS - _DIGITS - 1]} {digest}"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One proxy certificate. Times are whole seconds in UTC.

    `claimed_at` is the first stream opened with it, from the address `claimed_from`; `admitted_at` the first
    listeners acknowledged: both are remembered for good, whatever becomes of the connection. `claim_by` is
    until when it may be claimed, None for no deadline. `seen_at` is when it was seen in use later on.
    `signer` is the fingerprint of the root that signed it. `term` is how long it was asked to live, and is to
    live again when it is renewed; None where nothing was asked. `joined_by` is the kind of proof by which its
    holder has joined, and what was shown, by an id that is no secret; empty for who did not.
    """

    serial: str
    common_name: str
    uuid: ProxyUuid
    issued_at: datetime
    not_after: datetime
    claimed_at: datetime | None = None
    revoked_at: datetime | None = None
    admitted_at: datetime | None = None
    claimed_from: str = ""
    seen_at: datetime | None = None
    claim_by: datetime | None = None
    revoked_why: str = ""
    signer: str = ""
    term: timedelta | None = None
    joined_by: str = ""

    @classmethod
    def issued(
        cls,
        serial: str,
        name: ProxyName,
        now: datetime,
        not_after: datetime,
        claim_within: timedelta | None = None,
        signer: str = "",
        term: timedelta | None = None,
        joined_by: str = "",
    ) -> Self:
        """Return the entry of a certificate issued now, to be claimed within so long, if that is bounded."""
        at = now.replace(microsecond=0)
        claim_by = None if claim_within is None else at + claim_within
        return cls(
            serial,
            str(name),
            name.uuid,
            at,
            not_after,
            claim_by=claim_by,
            signer=signer,
            term=term,
            joined_by=proof_line(joined_by),
        )

    @property
    def state(self) -> LedgerState:
        """Return its state; a revoked one is revoked whether it was claimed before or not."""
        if self.revoked_at is not None:
            return LedgerState.REVOKED
        return LedgerState.ISSUED if self.claimed_at is None else LedgerState.CLAIMED

    @property
    def last_seen(self) -> datetime | None:
        """Return when it was last seen in use, to within SEEN_EVERY; None before it was claimed."""
        return self.seen_at or self.claimed_at

    def unclaimed_too_long(self, now: datetime) -> bool:
        """Say whether its deadline has passed without a claim."""
        return self.state is LedgerState.ISSUED and self.claim_by is not None and now > self.claim_by

    def in_force(self, now: datetime) -> bool:
        """Say whether who shows it is let in: neither revoked nor expired, and claimed or to be claimed."""
        return self.revoked_at is None and now <= self.not_after and not self.unclaimed_too_long(now)

    def takes(self, stamp: Stamp, now: datetime) -> bool:
        """Say whether a stamp is to be set now: each but SEEN once, and none on a revoked certificate."""
        if self.revoked_at is not None:
            return False
        if stamp is Stamp.SEEN:
            return self.last_seen is not None and now - self.last_seen >= SEEN_EVERY
        return getattr(self, stamp) is None

    def stamped(self, noted: Mapping[Stamp, StampDetail]) -> "LedgerEntry":
        """Return the entry with these stamps, as far as it takes them."""
        if self.revoked_at is not None:
            return self
        claimed, admitted = noted.get(Stamp.CLAIMED), noted.get(Stamp.ADMITTED)
        seen, revoked = noted.get(Stamp.SEEN), noted.get(Stamp.REVOKED)
        found = self
        if claimed is not None and self.claimed_at is None:
            found = replace(found, claimed_at=claimed.at, claimed_from=claimed.words)
        if admitted is not None and self.admitted_at is None:
            found = replace(found, admitted_at=admitted.at)
        if seen is not None and (self.seen_at is None or self.seen_at < seen.at):
            found = replace(found, seen_at=seen.at)
        if revoked is not None:
            found = replace(found, revoked_at=revoked.at, revoked_why=revoked.words)
        return found
