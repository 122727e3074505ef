"""Stamps of proxy certificates that apply before they are written: a part that all ledgers share."""

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from certs.ledger.entry import LedgerEntry, Stamp, StampDetail

NOTHING: Final[Mapping[Stamp, StampDetail]] = MappingProxyType({})


class RememberedStamps:
    """Stamps of proxy certificates in memory. Any thread may add and look up stamps, also during a write."""

    def __init__(self) -> None:
        self._noted: dict[str, dict[Stamp, StampDetail]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._noted)

    def serials(self) -> tuple[str, ...]:
        """Return the serials of the certificates with remembered stamps."""
        return tuple(self._noted)

    def note(self, entry: LedgerEntry, stamp: Stamp, detail: StampDetail) -> None:
        """Remember a stamp for a later write, if the entry takes the stamp."""
        with self._lock:
            noted = self._noted.get(entry.serial, {})
            if entry.stamped(noted).takes(stamp, detail.at):
                self._noted[entry.serial] = {**noted, stamp: detail}

    def noted(self, serial: str) -> Mapping[Stamp, StampDetail]:
        """Return the remembered stamps of a certificate, which are not yet written."""
        return self._noted.get(serial, NOTHING)

    def on(self, entry: LedgerEntry, before: Mapping[Stamp, StampDetail] = NOTHING) -> LedgerEntry:
        """Return a written entry with the remembered stamps of its certificate added.

        `before` are the remembered stamps that the caller read with `noted` before it read the written
        `entry`. Without `before`, stamps that another thread writes in between would be in neither of both.
        """
        noted = {**before, **self.noted(entry.serial)}
        return entry.stamped(noted) if noted else entry

    def forget(self, serial: str, written: Mapping[Stamp, StampDetail]) -> None:
        """Forget the written stamps of a certificate, and keep the stamps added during the write."""
        with self._lock:
            left = {
                stamp: stamp_detail
                for stamp, stamp_detail in self._noted.get(serial, {}).items()
                if stamp_detail is not written.get(stamp)
            }
            if left:
                self._noted[serial] = left
            else:
                self._noted.pop(serial, None)
