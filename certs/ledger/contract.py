"""The contract between who issues, lets in and revokes, and what remembers it: the ledger.

What becomes of a proxy certificate is a stamp on its entry. A stamp is remembered, counts from then on where
it was set, and is written with others; one that cannot be written now is written when it can be. Ours is a
file that the processes of one machine share (certs.ledger.sqlite); what servers on several machines share
has its place beside it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from certs.errors import RequestError, StateError
from certs.ledger.entry import LedgerEntry
from meshwright.mesh.identity import ProxyName

Judge = Callable[[tuple[LedgerEntry, ...]], None]
"""Looks at all that a ledger has of a name, and raises where there must be no other certificate of it."""


class UnwrittenError(StateError):
    """What happened to `entry` is so, in this process; the ledger could not be written."""

    def __init__(self, sentence: str, entry: LedgerEntry) -> None:
        super().__init__(sentence)
        self.entry = entry


class Ledger(Protocol):
    """Which proxy certificates were issued, claimed, admitted and revoked. Safe to use from several threads.

    Several may be open on the same record, in processes that start and die as they like: what one has written
    all of them see at the next call, and of two who set a stamp the first to write has set it. What one only
    remembers nobody else sees, and a process that dies loses it: so far that may be a claim or an admission,
    which the proxy shows again, and never a certificate that was issued.

    Every method raises StateError where the record cannot be read; a call is done as a whole or not at all.
    """

    @property
    def unwritten(self) -> int:
        """Return of how many certificates a stamp is remembered that is not written yet."""

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Add an entry, and write it: others know a certificate before anybody holds it.

        `judge` is asked in the same step, between which and the entry nothing of its name is revoked; what it
        raises keeps the entry out.
        A serial that is there already, in whichever process it was given, is StateError: serials are never
        given twice. One that cannot be written is StateError as well, and is not there then.
        """

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial (as we write serials), or None; one look-up, made for each new stream.

        While others keep the record busy, an entry may be what it was when it was last looked up.
        """

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return the entries of these proxies, sorted as all are; it costs little more than those of one."""

    def first(self) -> str | None:
        """Return the serial of the certificate that was issued first; None where none was."""

    def last_issued_at(self) -> datetime | None:
        """Return when a certificate was issued last; None where none was."""

    def authority(self) -> str | None:
        """Return the fingerprint of the CA that signs what is recorded here; None if that is not known."""

    def name_authority(self, fingerprint: str) -> None:
        """Note which CA signs, where none is noted; without room for that, a later start does it.

        It has signed what is there without a signer: that is from before signers were noted.
        """

    def change_authority(self, fingerprint: str) -> None:
        """Note that another CA signs from now on. Raises StateError where that cannot be written."""

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Note that a proxy connected with this certificate, from where, and return the entry.

        Only the first claim is noted, and none of a revoked certificate: look at the entry's state. It waits
        for no disk: it is remembered, and written with the next admissions. Raises RequestError if unknown.
        """

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Note that a claimed certificate is in use, if that was not noted for SEEN_EVERY; as `claim`."""

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Note that these proxies acknowledged their first listeners, and write down all that is remembered.

        It is noted of each certificate that such a proxy has claimed and that is not revoked; only the first
        time. Proxies that the ledger does not know are passed over. After a write that failed, it is left to
        `write_unwritten` to try again: who waits for this would wait in vain.
        """

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Revoke a certificate, write that and why, and return its entry; a second time changes nothing.

        The serial may be written as people paste it (`certs.keys.serial.read_serial`). Raises RequestError
        for one that is not in the ledger, with those that are nearest to it; UnwrittenError where it is
        revoked only for as long as this ledger is open, because that cannot be written.
        """

    def write_unwritten(self) -> None:
        """Write down all that is remembered. Raises StateError as long as that cannot be done."""


def unknown(serial: str, near: Iterable[tuple[str, str]]) -> RequestError:
    """Return the error for a serial that is not in the ledger; `near` are some that are, with their names."""
    known = ", ".join(f"{serial} ({name})" for serial, name in near)
    words = f"known are, among others, {known}" if known else "no proxy certificate was issued yet"
    return RequestError(f"serial {serial} is not in the ledger; {words}")
