"""Replacement of a lost ledger: refuses every proxy, and collects the certificates shown by proxies.

Such a certificate is signed by our root, so it belongs to a proxy. Whether it was revoked is not known any
more, so an administrator confirms each certificate.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from certs.errors import RequestError, StateError
from certs.keys.material import PeerCertificate
from certs.keys.serial import read_serial
from certs.ledger.contract import Judge, Ledger
from certs.ledger.entry import LedgerEntry
from certs.lifetimes import term_shown
from meshwright.mesh.identity import ProxyName

REBUILT: Final = (
    "the ledger is being rebuilt; until this is done, the server refuses all proxies and does not issue or "
    "revoke certificates"
)

MOST: Final = 100_000
"""Limit of collected candidates; more proxies are confirmed in several rounds."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A certificate shown by a proxy, with the last address, and whether the certificate is confirmed."""

    name: ProxyName
    serial: str
    not_before: datetime
    not_after: datetime
    address: str
    shown_at: datetime
    confirmed: bool = False
    signer: str = ""
    term: timedelta | None = None


class RebuildingLedger:
    """Ledger during the rebuild: it has no entries, and records none. Thread-safe.

    Confirmed entries are written to `kept`, which becomes the ledger afterwards. `signer_of` returns the
    fingerprint of a certificate's signing root. A certificate whose lifetime differs from `usual` keeps this
    lifetime when it is renewed.
    """

    def __init__(self, kept: Ledger, signer_of: Callable[[bytes], str], usual: timedelta) -> None:
        self._kept = kept
        self._signer_of = signer_of
        self._usual = usual
        self._shown: dict[str, Candidate] = {}
        self._lock = threading.Lock()

    def show(self, shown: PeerCertificate, pem: bytes, address: str, now: datetime) -> None:
        """Collect a proxy certificate refused because the ledger is missing. Does not wait for the disk."""
        with self._lock:
            if (before := self._shown.get(shown.serial)) is None and len(self._shown) >= MOST:
                return
            signer = self._signer_of(pem) if before is None else before.signer
            name, ends = ProxyName.parse(shown.common_name), (shown.not_before, shown.not_after)
            term = term_shown(*ends, self._usual)
            self._shown[shown.serial] = Candidate(
                name, shown.serial, *ends, address, now, signer=signer, term=term
            )

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the collected and confirmed proxy certificates, sorted by name and serial."""
        known = {entry.serial: _confirmed(entry) for entry in self._kept.entries()}
        with self._lock:
            for serial, candidate in self._shown.items():
                known[serial] = replace(candidate, confirmed=serial in known)
        return tuple(sorted(known.values(), key=lambda candidate: (candidate.name, candidate.serial)))

    def confirm(self, serial: str) -> Candidate:
        """Write a candidate to the new ledger as claimed and admitted; idempotent.

        Raises RequestError for a serial not shown by any proxy, StateError if the ledger cannot be written.
        """
        wanted = read_serial(serial)
        if (entry := self._kept.entry(wanted)) is not None:
            return _confirmed(entry)
        candidate = self._shown.get(wanted)
        if candidate is None:
            raise RequestError(f"no proxy has presented a certificate with the serial {wanted}")
        ends = candidate.not_before, candidate.not_after
        issued = LedgerEntry.issued(
            candidate.serial, candidate.name, *ends, signer=candidate.signer, term=candidate.term
        )
        at = candidate.shown_at.replace(microsecond=0)
        # Count it as admitted: otherwise the first proxies to return would send no traffic to the others.
        came = replace(issued, claimed_at=at, admitted_at=at, claimed_from=candidate.address)
        self._kept.record(came)
        return replace(candidate, confirmed=True)

    @property
    def unwritten(self) -> int:
        """Return 0, because stamps are not remembered here."""
        return 0

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Raise StateError, because the ledger is being rebuilt."""
        raise _refused(entry, judge)

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return None: no certificate is known."""

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return an empty tuple: no certificate is known."""
        return ()

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return an empty tuple: no certificate is known."""
        del name
        return ()

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return an empty tuple: no certificate is known."""
        del names
        return ()

    def first(self) -> str | None:
        """Return None: no certificate is known."""

    def last_issued_at(self) -> datetime | None:
        """Return None: no certificate is known."""

    def authority(self) -> str | None:
        """Return the fingerprint of the signing CA, as recorded in the new ledger."""
        return self._kept.authority()

    def name_authority(self, fingerprint: str) -> None:
        """Record the fingerprint of the signing CA in the new ledger."""
        self._kept.name_authority(fingerprint)

    def change_authority(self, fingerprint: str) -> None:
        """Raise StateError: the proxies affected by a change of the root are not known."""
        raise _refused(fingerprint)

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Raise StateError, because the ledger is being rebuilt."""
        raise _refused(serial, now, address)

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Raise StateError, because the ledger is being rebuilt."""
        raise _refused(serial, now)

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Ignore the call, because all proxies are unknown."""

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Raise StateError: an unconfirmed certificate is refused after the rebuild anyway."""
        raise _refused(serial, now, why)

    def write_unwritten(self) -> None:
        """Ignore the call, because stamps are not remembered here."""


def _refused(*arguments: object) -> StateError:
    """Return the error for calls that need to know the issued certificates."""
    del arguments
    return StateError(REBUILT)


def _confirmed(entry: LedgerEntry) -> Candidate:
    shown_at = entry.claimed_at or entry.issued_at
    name = ProxyName.parse(entry.common_name)
    ends = entry.issued_at, entry.not_after
    return Candidate(name, entry.serial, *ends, entry.claimed_from, shown_at, confirmed=True)
