"""One line of a check: its name, how it stands, what was found, and the next step."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


class Status(enum.StrEnum):
    """OK: nothing to do. WARNING: to be looked at, or could not be found out. FAILED: to be mended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one thing; `do` is the next step, and empty only where there is none to take."""

    name: str
    status: Status
    said: str
    do: str = ""

    @classmethod
    def ok(cls, name: str, said: str) -> Self:
        """Return one of which nothing is to be done."""
        return cls(name, Status.OK, said)

    @classmethod
    def warning(cls, name: str, said: str, do: str) -> Self:
        """Return one that is to be looked at."""
        return cls(name, Status.WARNING, said, do)

    @classmethod
    def failed(cls, name: str, said: str, do: str) -> Self:
        """Return one that is to be mended."""
        return cls(name, Status.FAILED, said, do)

    @classmethod
    def unseen(cls, name: str, seen: "UnavailableCheck") -> Self:
        """Return one that could not be found out."""
        return cls(name, Status.WARNING, f"cannot be found out: {seen.why}", seen.do)


@dataclass(frozen=True, slots=True)
class UnavailableCheck:
    """What could not be looked at, why not, and what would help."""

    why: str
    do: str = "try again"


def worst(checks: Iterable[Check]) -> Status:
    """Return the worst of how they stand; OK where there are none."""
    order = list(Status)
    return max((each.status for each in checks), key=order.index, default=Status.OK)


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: Iterable[str], most: int = 3) -> str:
    """Return names with commas, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
