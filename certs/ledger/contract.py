"""Contract of a ledger, for the issuance, admission and revocation of proxy certificates.

Each event of a certificate is a stamp on its entry. A stamp is remembered and counts from then on in this
process. The stamp is written together with others, or later if the disk refuses. `certs.ledger.sqlite`
implements the contract with a file shared by the processes of one machine. `certs.ledger.records` implements
it with records shared by the servers of several machines.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol, runtime_checkable

from certs.errors import RequestError, StateError
from certs.ledger.entry import LedgerEntry
from meshwright.mesh.identity import ProxyName

Receive = Callable[[tuple[LedgerEntry, ...]], None]
"""Receiver of entries; it must not raise, and must not wait."""

Judge = Callable[[tuple[LedgerEntry, ...]], None]
"""Check with all entries of a name; raises if another certificate must not be issued for the name.

The check must be pure and quick. It may be called several times, and in another thread.
"""


class UnwrittenError(StateError):
    """Error for an event that counts in this process although the ledger could not be written.

    `entry` is the entry with the event.
    """

    def __init__(self, sentence: str, entry: LedgerEntry) -> None:
        super().__init__(sentence)
        self.entry = entry


class Ledger(Protocol):
    """The record of issued, claimed, admitted and revoked proxy certificates. Thread-safe.

    Several ledgers may be open on the same record, in processes starting and dying at any time. A write of
    one ledger is visible to all others at their next call; if two set the same stamp, the first to write
    wins. A remembered stamp is invisible to the others, and lost if the process dies. This can happen only to
    claims and admissions, because the proxy shows them again, and never to an issued certificate. Every
    method raises StateError for an unreadable record. A call takes effect as a whole or not at all.
    """

    @property
    def unwritten(self) -> int:
        """Return the number of certificates with stamps not yet written to the file."""

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Write a new entry, so the ledger knows a certificate before the holder gets the certificate.

        `judge` is called in the same transaction, so a revocation for this name between the check and the
        write is impossible. If `judge` raises, the entry is not added. Raises StateError if the serial exists
        already, in any process, because serials are unique. Raises StateError also if writing fails; the
        entry is not added then.
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

        The cost is little more than for one proxy.
        """

    def first(self) -> str | None:
        """Return the serial of the first issued certificate, or None if the ledger is empty."""

    def last_issued_at(self) -> datetime | None:
        """Return the time of the newest issue, or None if the ledger is empty."""

    def authority(self) -> str | None:
        """Return the recorded fingerprint of the signing CA; None if unknown."""

    def name_authority(self, fingerprint: str) -> None:
        """Record the signing CA, unless one is recorded; on a full disk, a later start records the CA.

        Entries without a signer are attributed to this CA, because they are older than the record of signers.
        """

    def change_authority(self, fingerprint: str) -> None:
        """Record that another CA signs from now on. Raises StateError if writing fails."""

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Record the first connection with a certificate, from which address, and return the entry.

        Only the first claim is recorded, and only on a valid certificate: check the state of the entry. The
        call does not wait for the disk; the claim is written with the next admissions. Raises RequestError
        for an unknown serial.
        """

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Record that a claimed certificate is in use, at most once per SEEN_EVERY; otherwise as `claim`.

        A shared ledger remembers the use on this server only, because most writes would be of this kind.
        """

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Record that these proxies acknowledged their first listeners, and write everything remembered.

        Each claimed certificate of the proxies gets one stamp, unless it is revoked. Unknown proxies are
        ignored. After a failed write only `write_unwritten` tries again, so callers do not wait for a broken
        disk.
        """

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Revoke a certificate with the reason, write the entry, and return it; idempotent.

        The serial may be in any notation accepted by `certs.keys.serial.read_serial`, for example `3F:9A:02`.
        Raises RequestError for an unknown serial, with the nearest ones; UnwrittenError if the writing
        failed, and the revocation counts only while this ledger is open.
        """

    def write_unwritten(self) -> None:
        """Write all remembered stamps to the file. Raises StateError as long as writing fails."""


@runtime_checkable
class SharedLedger(Ledger, Protocol):
    """A ledger of several servers, which read from memory what the others have written a moment ago.

    Writes of other servers are known here as soon as `follow` has received them. Methods that write wait for
    the store, so they are for threads. If the outcome of `record` stays unknown, the call raises StateError.
    The ledger may then have the entry of a certificate that was never handed out.
    """

    async def follow(self, receive: Receive) -> None:
        """Keep the entries up to date until cancelled; call on the event loop of the store.

        `receive` is called with each entry that has become another one by a write elsewhere, first with all
        entries that are there. For example, a certificate revoked on another server is received here, so that
        the streams of its proxy end on this server too.
        """

    async def fetch(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Ask the store once for the certificates of a proxy, and return them; raise StateError.

        May be awaited on any event loop, also on another one than that of the store.

        A proxy may have joined on another server a moment ago, before `follow` has received the entry.
        """


def unknown(serial: str, near: Iterable[tuple[str, str]]) -> RequestError:
    """Return the error for an unknown serial; `near` are pairs of similar serials and their names."""
    known = ", ".join(f"{serial} ({name})" for serial, name in near)
    words = f"some serials in the ledger: {known}" if known else "proxy certificates have not been issued yet"
    return RequestError(f"serial {serial} is not in the ledger; {words}")
