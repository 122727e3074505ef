"""The table of faults: one row for each fault, with the figures that every fault is judged by."""

import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.replicas.observers import Change

IS_LONG: Final = os.environ.get("MESHWRIGHT_SOAK") == "long"
LONG: Final = pytest.mark.skipif(not IS_LONG, reason="a row of `make soak-replicas`")

RESULTS: Final = "MESHWRIGHT_REPLICAS_RESULTS"
"""Variable with the path of a file that the table is written to as JSON."""


@dataclass
class Row:
    """The figures of one fault. `healed` is in seconds, from the fault to a settled mesh."""

    name: str
    engine: str
    sent: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    """Seconds of the slowest request."""
    healed: float | None = None
    changes: list[Change] = field(default_factory=list)
    note: str = ""

    def check(self, *, changes: bool = False) -> None:
        """Require that no request has failed, and without `changes` that no version changed."""
        assert self.sent > 0, "nothing was sent"
        assert not self.failures, f"{self.name}: {dict(self.failures)}"
        assert changes or not self.changes, f"{self.name}: " + "; ".join(map(str, self.changes[:20]))

    def __str__(self) -> str:
        """Return the row of the table."""
        healed = "-" if self.healed is None else f"{self.healed:.1f}"
        failed = self.failures.total()
        return (
            f"{self.name[:52]:<52} | {self.engine:<10} | {self.sent:>6} | {failed:>6} | {healed:>6} | "
            f"{len(self.changes):>7} | {self.note}"
        )


HEADINGS: Final = (
    f"{'fault':<52} | {'store':<10} | {'sent':>6} | {'failed':>6} | {'healed':>6} | {'changed':>7} | remark"
)


@dataclass
class Table:
    """The rows so far. Each is printed as soon as it is complete."""

    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Print a row, and write all of them as JSON if the environment names a file."""
        self.rows.append(row)
        sys.stdout.write(f"\n{row}\n")
        if path := os.environ.get(RESULTS):
            Path(path).write_text(json.dumps([_fields(item) for item in self.rows], indent=1) + "\n")

    def print(self) -> None:
        """Print the whole table."""
        if self.rows:
            sys.stdout.write("\n" + "\n".join([HEADINGS, *map(str, self.rows)]) + "\n")


def _fields(row: Row) -> dict[str, object]:
    return {
        "fault": row.name,
        "store": row.engine,
        "sent": row.sent,
        "failed": row.failures.total(),
        "healed_seconds": row.healed,
        "changed": [str(change) for change in row.changes],
        "slowest_request_seconds": round(row.longest, 3),
        "remark": row.note,
    }
