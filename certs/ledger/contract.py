"""Contract of a ledger, for the code that issues, admits and revokes proxy certificates.

Each event of a certificate is a stamp on its entry. A stamp is remembered and counts from then on in this
process; it is written together with others, or later if the disk refuses. `certs.ledger.sqlite` implements
the contract with a file that the processes of one machine share. A ledger that several machines share would
implement it too.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from certs.errors import RequestError, StateError
from certs.ledger.entry import LedgerEntry
from meshwright.mesh.identity import ProxyName

Judge = Callable[[tuple[LedgerEntry, ...]], None]
"""Function that gets all entries of a name, and raises if another certificate must not be issued for it."""


class UnwrittenError(StateError):
    """Error for an event that holds in this process although the ledger could not be written.

    `entry` is the entry with the event.
    """

    def __init__(self, sentence: str, entry: LedgerEntry) -> None:
        super().__init__(sentence)
        self.entry = entry


class Ledger(Protocol):
    """The record of issued, claimed, admitted and revoked proxy certificates. Thread-safe.

    Several ledgers may be open on the same record, in processes that start and die at any time. All of them
    see at their next call what one has written; if two set the same stamp, the first to write wins. A stamp
    that is only remembered is invisible to the others, and is lost if the process dies. Only claims and
    admissions can be lost so, because the proxy shows them again; an issued certificate never is.
    Every method raises StateError if the record cannot be read. A call takes effect as a whole or not at all.
    """

    @property
    def unwritten(self) -> int:
        """Return the number of certificates with stamps that are not written yet."""

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Add an entry and write it, so that the ledger knows a certificate before its holder does.

        `judge` is called in the same transaction, so nothing of this name can be revoked between the check
        and the write. If it raises, the entry is not added.
        Raises StateError if the serial exists already, in any process, because serials are unique. Raises
        StateError also if the entry cannot be written; it is not added then.
        """

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial in our notation, or None.

        This is one look-up, done for each new stream.

        While another process holds the lock, the entry may be as old as the last look-up.
        """

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return the entries of these proxies, sorted as in `entries`.

        It costs little more than one proxy.
        """

    def first(self) -> str | None:
        """Return the serial of the certificate that was issued first, or None if the ledger is empty."""

    def last_issued_at(self) -> datetime | None:
        """Return the time of the newest issue, or None if the ledger is empty."""

    def authority(self) -> str | None:
        """Return the fingerprint of the CA that signs the recorded certificates; None if unknown."""

    def name_authority(self, fingerprint: str) -> None:
        """Record the CA that signs, unless one is recorded; if the disk is full, a later start does it.

        Entries without a signer are attributed to it. They are older than the first program that recorded
        signers.
        """

    def change_authority(self, fingerprint: str) -> None:
        """Record that another CA signs from now on. Raises StateError if that cannot be written."""

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Record the first connection with a certificate, from which address, and return the entry.

        Only the first claim is recorded, and none on a revoked certificate: check the state of the entry. The
        call does not wait for the disk; the claim is written with the next admissions. Raises RequestError
        for an unknown serial.
        """

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Record that a claimed certificate is in use, at most once per SEEN_EVERY; otherwise as `claim`."""

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Record that these proxies acknowledged their first listeners, and write everything remembered.

        Each claimed certificate of the proxies is stamped that is not revoked and has no such stamp. Unknown
        proxies are ignored. After a failed write only `write_unwritten` tries again, so that callers do not
        wait for a disk that is broken.
        """

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Revoke a certificate, write that with the reason, and return its entry; repeating changes nothing.

        The serial may be in any notation that `certs.keys.serial.read_serial` accepts. Raises RequestError
        for an unknown serial, with the nearest ones; UnwrittenError if the revocation could not be written
        and holds only while this ledger is open.
        """

    def write_unwritten(self) -> None:
        """Write everything remembered. Raises StateError as long as that is not possible."""


def unknown(serial: str, near: Iterable[tuple[str, str]]) -> RequestError:
    """Return the error for an unknown serial; `near` are pairs of similar serials and their names."""
    known = ", ".join(f"{serial} ({name})" for serial, name in near)
    words = f"some serials in the ledger: {known}" if known else "no proxy certificate has been issued yet"
    return RequestError(f"serial {serial} is not in the ledger; {words}")
