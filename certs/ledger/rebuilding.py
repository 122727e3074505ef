"""A ledger that was lost, on its way back: nobody is let in by it while proxies show what they have.

What a proxy shows stands below our root and is a proxy's: that is known of it. That it was not revoked nobody
knows any more, so whoever answers for the mesh confirms each of them.
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

REBUILT: Final = "the ledger is being rebuilt: until then nobody is let in, and nothing is issued or revoked"

MOST: Final = 100_000
"""So many candidates are noted; more proxies than that are confirmed bit by bit."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A certificate that was shown: whose, of which root, from where it came last, and if it is confirmed."""

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
    """The ledger as whoever serves proxies sees it meanwhile: it knows nobody, and takes nothing.

    What is confirmed is written to `kept`, which becomes the ledger when that is over; `signer_of` says which
    root has signed a certificate. One that lives otherwise than is `usual` is renewed for as long. Safe to
    use from several threads.
    """

    def __init__(self, kept: Ledger, signer_of: Callable[[bytes], str], usual: timedelta) -> None:
        self._kept = kept
        self._signer_of = signer_of
        self._usual = usual
        self._shown: dict[str, Candidate] = {}
        self._lock = threading.Lock()

    def show(self, shown: PeerCertificate, pem: bytes, address: str, now: datetime) -> None:
        """Note a proxy's certificate that was not let in for want of the ledger; waits for no disk."""
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
        """Return what was shown since the start, and what was confirmed before, sorted by name and serial."""
        known = {each.serial: _confirmed(each) for each in self._kept.entries()}
        with self._lock:
            for serial, each in self._shown.items():
                known[serial] = replace(each, confirmed=serial in known)
        return tuple(sorted(known.values(), key=lambda each: (each.name, each.serial)))

    def confirm(self, serial: str) -> Candidate:
        """Write a candidate down as a certificate that is claimed and admitted; again changes nothing.

        Raises RequestError for one that nobody has shown, StateError.
        """
        wanted = read_serial(serial)
        if (entry := self._kept.entry(wanted)) is not None:
            return _confirmed(entry)
        found = self._shown.get(wanted)
        if found is None:
            raise RequestError(f"nobody has shown a certificate with the serial {wanted}")
        ends = found.not_before, found.not_after
        issued = LedgerEntry.issued(found.serial, found.name, *ends, signer=found.signer, term=found.term)
        at = found.shown_at.replace(microsecond=0)
        # It counts as admitted: else whoever comes back first would be told to send the others no traffic.
        came = replace(issued, claimed_at=at, admitted_at=at, claimed_from=found.address)
        self._kept.record(came)
        return replace(found, confirmed=True)

    @property
    def unwritten(self) -> int:
        """Return 0: nothing is remembered here."""
        return 0

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Raise StateError."""
        raise _refused(entry, judge)

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return None: nobody is known."""

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return nothing."""
        return ()

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return nothing."""
        del name
        return ()

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return nothing."""
        del names
        return ()

    def first(self) -> str | None:
        """Return None."""

    def last_issued_at(self) -> datetime | None:
        """Return None."""

    def authority(self) -> str | None:
        """Return which CA signs, as the ledger to come has it."""
        return self._kept.authority()

    def name_authority(self, fingerprint: str) -> None:
        """Note which CA signs."""
        self._kept.name_authority(fingerprint)

    def change_authority(self, fingerprint: str) -> None:
        """Raise StateError: whom a change of the root concerns is not known."""
        raise _refused(fingerprint)

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Raise StateError."""
        raise _refused(serial, now, address)

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Raise StateError."""
        raise _refused(serial, now)

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Pass over proxies that are not known."""

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Raise StateError: who is not confirmed is refused when it is over."""
        raise _refused(serial, now, why)

    def write_unwritten(self) -> None:
        """Do nothing: nothing is remembered here."""


def _refused(*asked: object) -> StateError:
    """Return the error for whatever would need to know what was issued."""
    del asked
    return StateError(REBUILT)


def _confirmed(entry: LedgerEntry) -> Candidate:
    shown_at = entry.claimed_at or entry.issued_at
    name = ProxyName.parse(entry.common_name)
    ends = entry.issued_at, entry.not_after
    return Candidate(name, entry.serial, *ends, entry.claimed_from, shown_at, confirmed=True)
