"""One proxy certificate in a ledger, and its stamps, which are the times of events such as the first use.

A pure module.
"""

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid

SEEN_EVERY: Final = timedelta(minutes=15)
"""Shortest time between two SEEN stamps: each is a write, and there are many proxies."""

MOST_WORDS: Final = 200
"""Limit of the text of a stamp, in characters: a growing row must fit on a full disk too."""

_DIGITS: Final = 32

_ROOTS_DIGITS: Final = 16


class LedgerState(enum.StrEnum):
    """State of a certificate: issued, then claimed by a first connection, then revoked."""

    ISSUED = "issued"
    CLAIMED = "claimed"
    REVOKED = "revoked"


class Stamp(enum.StrEnum):
    """Event in the life of a proxy certificate, whose time the ledger records in the field of that name.

    CLAIMED is the first connection with the certificate, ADMITTED the first ACK of listeners, and SEEN the
    latest use. They are in the usual order. Each event is recorded once, except SEEN.
    """

    CLAIMED = "claimed_at"
    ADMITTED = "admitted_at"
    SEEN = "seen_at"
    REVOKED = "revoked_at"


@dataclass(frozen=True, slots=True)
class StampDetail:
    """Time of an event, with a text: the address of the first connection, or the reason of a revocation."""

    at: datetime
    words: str = ""

    @classmethod
    def shorten(cls, at: datetime, words: str = "") -> Self:
        """Return a detail in stored form: whole seconds, one line, at most MOST_WORDS characters."""
        return cls(at.replace(microsecond=0), one_line(words))


def one_line(words: str) -> str:
    """Return a text in stored form: one line, at most MOST_WORDS characters."""
    return "".join(word if word.isprintable() else " " for word in words).strip()[:MOST_WORDS]


def proof_line(shown: str) -> str:
    """Return the id of a proof in its stored form: one line that is still unique.

    A changed or cut text ends with a digest of the original.
    """
    line = one_line(shown)
    if line == shown:
        return line
    digest = hashlib.sha256(shown.encode(errors="backslashreplace")).hexdigest()[:_DIGITS]
    return f"{line[: MOST_WORDS - _DIGITS - 1]} {digest}"


def given_roots(bundle_pem: bytes) -> str:
    """Return the identifier of the CA certificates that are issued together with a certificate."""
    return hashlib.sha256(bundle_pem).hexdigest()[:_ROOTS_DIGITS]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One proxy certificate. Times are whole seconds in UTC.

    - `claimed_at`, `claimed_from`: time of the first stream, and the address; kept after the connection ends.
    - `admitted_at`: time of the first ACK of listeners; kept as well.
    - `claim_by`: deadline of the first connection, or None.
    - `seen_at`: last time of use after the claim.
    - `signer`: fingerprint of the signing root.
    - `term`: requested lifetime, used again for renewals; None for the default.
    - `joined_by`: kind of the holder's joining proof, with an id without secrets, for example `token 4f1c`;
      empty without proof.
    - `roots`: `given_roots` of the CA certificates issued together with the certificate; empty if unknown.
      Only a ledger that several servers share keeps it: one of them may be behind in a root rotation.
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
    roots: str = ""

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
        roots: str = "",
    ) -> Self:
        """Return the entry of a certificate issued `now`; `claim_within` bounds the first connection."""
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
            roots=roots,
        )

    @property
    def state(self) -> LedgerState:
        """Return the state of the certificate; a revoked one is REVOKED, claimed or not."""
        if self.revoked_at is not None:
            return LedgerState.REVOKED
        return LedgerState.ISSUED if self.claimed_at is None else LedgerState.CLAIMED

    @property
    def last_seen(self) -> datetime | None:
        """Return the time of the last use, with a precision of SEEN_EVERY; None before the claim."""
        return self.seen_at or self.claimed_at

    def unclaimed_too_long(self, now: datetime) -> bool:
        """Return whether the deadline of the first connection has passed without a claim."""
        return self.state is LedgerState.ISSUED and self.claim_by is not None and now > self.claim_by

    def in_force(self, now: datetime) -> bool:
        """Return whether the holder is admitted.

        Certificates that are revoked, expired, or unclaimed for too long are refused.
        """
        return self.revoked_at is None and now <= self.not_after and not self.unclaimed_too_long(now)

    def takes(self, stamp: Stamp, now: datetime) -> bool:
        """Return whether a stamp must be set now.

        SEEN may be set again, any other stamp only once, and none after the revocation.
        """
        if self.revoked_at is not None:
            return False
        if stamp is Stamp.SEEN:
            return self.last_seen is not None and now - self.last_seen >= SEEN_EVERY
        return getattr(self, stamp) is None

    def stamped(self, noted: Mapping[Stamp, StampDetail]) -> "LedgerEntry":
        """Return the entry with these stamps, as far as `takes` allows."""
        if self.revoked_at is not None:
            return self
        claimed, admitted = noted.get(Stamp.CLAIMED), noted.get(Stamp.ADMITTED)
        seen, revoked = noted.get(Stamp.SEEN), noted.get(Stamp.REVOKED)
        entry = self
        if claimed is not None and self.claimed_at is None:
            entry = replace(entry, claimed_at=claimed.at, claimed_from=claimed.words)
        if admitted is not None and self.admitted_at is None:
            entry = replace(entry, admitted_at=admitted.at)
        if seen is not None and (self.seen_at is None or self.seen_at < seen.at):
            entry = replace(entry, seen_at=seen.at)
        if revoked is not None:
            entry = replace(entry, revoked_at=revoked.at, revoked_why=revoked.words)
        return entry
