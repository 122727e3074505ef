"""What reporting counts of itself, for whoever keeps the numbers."""

import enum
from typing import Protocol


class What(enum.StrEnum):
    """What is written."""

    STATUS = "status"
    EVENT = "event"


class Meter(Protocol):
    """Counts; must return at once and not raise."""

    def reported(self, what: What, failed: str = "") -> None:
        """Count a write, or one that failed, and why in a word."""

    def reporting(self, *, leads: bool) -> None:
        """Note whether this server is the one that writes."""
