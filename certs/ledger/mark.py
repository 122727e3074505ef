"""High-water mark of revocations, in a file beside the ledger, to detect an older ledger that was put back.

The number of revoked certificates in the ledger never falls, because rows are kept for good. The mark is the
highest number ever. The mark is not part of a backup: a ledger with fewer revocations than the mark has lost
some. The file is made with the ledger, and the number is written in place and with a fixed width, so raising
the number works on a full disk. For example, after a restore of a backup the ledger counts 11 revocations and
the mark 12: one revocation is lost.
"""

import os
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.state import files

ENDING: Final = ".revocations"
"""Suffix of the mark's file name: ledger.sqlite.revocations."""
_WIDTH: Final = 20

_log = structlog.get_logger("certs.ledger")


class RevocationMark:
    """The file with the highest number of revocations in one ledger.

    Processes of one machine share the file.
    """

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + ENDING)
        self._missed = 0

    def read(self) -> int:
        """Return the highest recorded number of revocations, 0 without a record. Raises StateError."""
        content = files.read(self.path)
        if content is None or not content.strip():
            return 0
        try:
            return int(content.decode("ascii"))
        except ValueError:
            raise StateError(
                f"{self.path} is damaged: it must contain the number of revoked certificates. If "
                "the ledger in the same directory is the newest one, remove the file"
            ) from None

    def raise_to(self, count: int) -> None:
        """Record a number of revocations, unless a higher one is recorded; log once if writing fails.

        A count of 0 only makes a missing file. A revocation must not fail because of the mark, because the
        ledger has the revocation.
        """
        try:
            if self._holds(count):
                return
            with files.locked(self.path.with_name(self.path.name + ".lock")):
                if not self._holds(count):  # another process may have raised it
                    self._write(count)
        except (StateError, OSError) as error:
            if count > self._missed:
                self._missed = count
                _log.error("revocation count cannot be written", reason=str(error), count=count)

    def _holds(self, count: int) -> bool:
        """Return whether the file exists and has at least this number of revocations."""
        return self.path.exists() and count <= self.read()

    def _write(self, count: int) -> None:
        files.touch_private(self.path)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.pwrite(descriptor, f"{count:0{_WIDTH}d}\n".encode("ascii"), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
