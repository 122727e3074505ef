"""Checks as a table for a terminal, and as JSON."""

from collections.abc import Sequence
from typing import Final

from meshwright.cli.checking.judgements.check import Check, Status, worst
from meshwright.cli.printing.responses import print_json
from meshwright.cli.printing.table import columns, console, styled, with_step

_STYLES: Final = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "red"}


def show(checks: Sequence[Check], *, as_json: bool) -> None:
    """Print each check, with the next step on a second line."""
    if as_json:
        print_json({"status": worst(checks).value, "checks": [record(check) for check in checks]})
        return
    made = columns("CHECK", "STATE", "FOUND")
    for check in checks:
        made.add_row(
            check.name, styled(check.status.value, _STYLES[check.status]), with_step(check.finding, check.do)
        )
    console().print(made)


def record(check: Check) -> dict[str, str]:
    """Return one check as in the JSON output."""
    return {"name": check.name, "status": check.status.value, "said": check.finding, "do": check.do}
