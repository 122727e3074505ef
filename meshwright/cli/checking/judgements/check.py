"""One line of a check: name, status, observation and next step."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


class Status(enum.StrEnum):
    """OK: all is well. WARNING: needs attention, or could not be determined. FAILED: needs a repair."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check; `do` is the next step, empty only if there is none."""

    name: str
    status: Status
    finding: str
    do: str = ""

    @classmethod
    def ok(cls, name: str, finding: str) -> Self:
        """Return a check without anything to do."""
        return cls(name, Status.OK, finding)

    @classmethod
    def warning(cls, name: str, finding: str, do: str) -> Self:
        """Return a check with status WARNING."""
        return cls(name, Status.WARNING, finding, do)

    @classmethod
    def failed(cls, name: str, finding: str, do: str) -> Self:
        """Return a check with status FAILED."""
        return cls(name, Status.FAILED, finding, do)

    @classmethod
    def unseen(cls, name: str, seen: "UnavailableCheck") -> Self:
        """Return a check with status WARNING, because of a failed observation."""
        return cls(name, Status.WARNING, f"unknown: {seen.why}", seen.do)


@dataclass(frozen=True, slots=True)
class UnavailableCheck:
    """The reason for a failed observation of a check, and the next step."""

    why: str
    do: str = "try again"


def worst(checks: Iterable[Check]) -> Status:
    """Return the worst status of checks; OK without any."""
    # The members are declared from the best to the worst.
    order = list(Status)
    return max((check.status for check in checks), key=order.index, default=Status.OK)


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with a noun, for example `2 proxies`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: Iterable[str], most: int = 3) -> str:
    """Return at most `most` names with commas, and the number of further names."""
    result = list(names)
    more = f" and {len(result) - most} more" if len(result) > most else ""
    return ", ".join(result[:most]) + more
