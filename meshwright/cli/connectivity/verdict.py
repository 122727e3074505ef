"""How a step is judged."""

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """OK: as policy says, be that a denial. FAILED: otherwise. UNKNOWN: it could not be found out."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepResult:
    """A verdict, what was found, and, where it is not OK, what to do next."""

    verdict: Verdict
    text: str
    do: str = ""
