"""A program that works on a large ledger while its file system is full, and prints JSON."""

import json
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from meshwright.mesh.identity import ProxyName
from tests.tools.volumes import Volume

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
ROWS = 3000


def main(directory: Path) -> None:
    """Issue, fill the disk, claim, admit, revoke half, free the disk, and print what the ledger has."""
    path, disk = directory / "ledger.sqlite", Volume(0, directory, directory)
    names = [ProxyName.parse(f"u{n}{'x' * (n % 40)}.{'s' * (1 + n % 60)}.shop") for n in range(ROWS)]
    serials = {name: f"a{random.Random(n).randbytes(19).hex()}" for n, name in enumerate(names)}  # noqa: S311
    with SqliteLedger.open(path) as ledger:
        for name, serial in serials.items():
            ledger.record(LedgerEntry.issued(serial, name, NOW, NOW))
        disk.fill()
        for serial in serials.values():
            ledger.claim(serial, NOW)
        ledger.admit(names, NOW)
        unwritten = ledger.unwritten
        counted = [entry.claimed_at == entry.admitted_at == NOW for entry in ledger.entries()]
        for name in names[::2]:
            ledger.revoke(serials[name], NOW)
        revoked = _revoked(path)
        disk.free()
        ledger.write_unwritten()
        left = ledger.unwritten
    with SqliteLedger.open(path) as ledger:
        written = [(entry.claimed_at, entry.admitted_at) == (NOW, NOW) for entry in ledger.entries()]
    sys.stdout.write(
        json.dumps(
            {
                "remembered": unwritten > 0,
                "counted": sum(counted),
                "revoked": revoked,
                "left": left,
                "written": sum(written),
            }
        )
    )


def _revoked(path: Path) -> int:
    """Return the number of revoked certificates in the file."""
    with SqliteLedger.open(path) as ledger:
        return sum(entry.revoked_at is not None for entry in ledger.entries())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
