"""Judgement of Events about the control plane's own objects, such as the MeshConfig."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.cli.checking.judgements.check import Check, listed

NAME: Final = "reported problems"

_BROKEN: Final = frozenset({"GatewayCertificateNotWritten", "InjectionConfigurationRefused"})
"""Reasons of Events about parts of the installation that do not work."""

_NAMED: Final = 3
"""Most problems to name."""


@dataclass(frozen=True, slots=True)
class ReportedProblem:
    """A problem in an Event: the object, the Event's reason, and the note."""

    about: str
    reason: str
    note: str

    def __str__(self) -> str:
        return f"{self.about}: {self.note} ({self.reason})"


def reported(reported_problems: Sequence[ReportedProblem], home: str) -> Check:
    """Judge the problems of objects in the control plane's namespace, the most severe first."""
    if not reported_problems:
        return Check.ok(NAME, f"Events do not report problems of objects in namespace {home}")
    ordered = sorted(
        reported_problems,
        key=lambda problem: (
            problem.reason not in _BROKEN,
            problem.about,
            problem.note,
        ),
    )
    text = listed([str(problem) for problem in ordered], _NAMED)
    do = f"follow the text of the Event; for all Events: `kubectl -n {home} get events`"
    make = Check.failed if ordered[0].reason in _BROKEN else Check.warning
    return make(NAME, text, do)
