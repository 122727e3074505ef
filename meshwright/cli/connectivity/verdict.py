"""Result of judging a step."""

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """Verdict on one step.

    OK: as policy requires, also for a denial. FAILED: different. UNKNOWN: could not be determined.
    """

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepResult:
    """A verdict, the observation, and the next step unless the verdict is OK."""

    verdict: Verdict
    text: str
    do: str = ""
