"""Verdicts of a walk through the acceptance matrix, and the table with them. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from demo.apps import outcomes
from demo.matrix import CELLS, PHASES, Request


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one check: expected and observed outcome, and whether they agree."""

    phase: str
    what: str
    expected: str
    observed: str
    holds: bool


@dataclass(frozen=True, slots=True)
class CellResult:
    """Outcomes of the requests of one cell at the client, and the number of them counted by the server."""

    results: Counter[str] = field(default_factory=Counter)
    counted: int = 0

    def is_served(self, requests: int) -> bool:
        """Return whether all `requests` were served, and the server counted exactly so many."""
        served = sum(number for outcome, number in self.results.items() if outcomes.is_allowed(outcome))
        return served == requests == self.results.total() == self.counted

    def is_denied(self, requests: int) -> bool:
        """Return whether all `requests` were denied, and the server counted zero of them."""
        denied = sum(number for outcome, number in self.results.items() if outcomes.is_denied(outcome))
        return denied == requests == self.results.total() and self.counted == 0

    def __str__(self) -> str:
        seen = ", ".join(f"{number} x {outcome}" for outcome, number in sorted(self.results.items()))
        return f"{seen or 'no requests'}; the server counted {self.counted}"


def controls(
    verdicts: Iterable[Verdict], cells: Sequence[tuple[str, Request]] = CELLS
) -> tuple[Verdict, ...]:
    """Return a positive control for each row with denials: the request must be served in another phase.

    Without a positive control a denial proves little, because the path could be broken for another reason.
    """
    served = {verdict.what for verdict in verdicts if verdict.expected == "served" and verdict.holds}
    return tuple(
        Verdict(
            "all",
            f"positive control: {request.label}",
            "served in a phase",
            "served" if request.label in served else "never served",
            request.label in served,
        )
        for cell, request in cells
        if "-" in cell
    )


def grid(verdicts: Sequence[Verdict]) -> RenderableType:
    """Return the matrix as a table (a row per request, a column per phase), followed by the other checks."""
    table = Table(
        title="Requests, expected/observed: ✔ served, ✘ denied, ! other than expected", title_justify="left"
    )
    table.add_column("request")
    for phase in PHASES:
        table.add_column(phase.name, justify="center")
    result = {(verdict.phase, verdict.what): verdict for verdict in verdicts}
    for _, request in CELLS:
        table.add_row(request.label, *(_mark(result.get((phase.name, request.label))) for phase in PHASES))
    rows = {request.label for _, request in CELLS}
    others = Table(box=None, pad_edge=False, title="Other checks", title_justify="left")
    for column in ("phase", "check", "expected", "observed", ""):
        others.add_column(column)
    for verdict in verdicts:
        if verdict.what not in rows:
            mark = Text("ok", style="green") if verdict.holds else Text("WRONG", style="bold red")
            others.add_row(verdict.phase, verdict.what, verdict.expected, verdict.observed, mark)
    phases = Text("\n".join(f"{phase.name}  {phase.title}" for phase in PHASES))
    return Group(phases, table, others)


def _mark(verdict: Verdict | None) -> Text:
    if verdict is None:
        return Text("?", style="bold red")
    expected = "✔" if verdict.expected == "served" else "✘"
    if verdict.holds:
        return Text(f"{expected}/{expected}", style="green")
    return Text(f"{expected}/!", style="bold red")


def wrong(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return one line for each failed check, for example `phase C: split: expected ..., observed ...`."""
    return tuple(
        f"phase {verdict.phase}: {verdict.what}: expected {verdict.expected}, observed {verdict.observed}"
        for verdict in verdicts
        if not verdict.holds
    )
