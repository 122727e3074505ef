"""What is wrong with objects, in the words of whoever must mend it: one shape, one order, one log line."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Order, Origin
from meshwright.mesh.terminal.printable import on_one_line


class Severity(enum.StrEnum):
    """ERROR: (part of) the object is not in force. WARNING: in force, but look. INFO: read, not used."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with an object, or where there is none to name with what stands at `origin`.

    `code` is stable. `field` is a path such as `spec.rules[0].kind`; `value` is what stands there, cut
    short and never a secret; `expected` says what would be right.
    """

    code: str
    severity: Severity
    origin: Origin
    key: ObjectKey | None = None
    field: str = ""
    value: str = ""
    expected: str

    @property
    def said(self) -> str:
        """What is wrong, in one line, for whoever knows with which object."""
        found = " ".join(part for part in (self.field, f"is {self.value}" if self.value else "") if part)
        return on_one_line(f"{found + ': ' if found else ''}{self.expected}")

    def __str__(self) -> str:
        named = str(self.key) if self.key else "document"
        return f"{self.code} {on_one_line(f'{self.origin}: {named}')}: {self.said}"


Problems = tuple[Problem, ...]
"""What somebody says is wrong: sorted, each once."""


def ordered(problems: Iterable[Problem]) -> Problems:
    """Return problems by where they stand, each once."""
    return tuple(sorted(set(problems), key=_order))


def _order(problem: Problem) -> tuple[Order, str, str, str, str, str, str]:
    # As text, since a key may be None. The last two tell apart what else would lie as a set has it.
    key, severity = str(problem.key), problem.severity.value
    return (problem.origin.order, problem.code, key, problem.field, problem.value, problem.expected, severity)


class Log(Protocol):
    """What problems are logged to: a logger of structlog."""

    def error(self, event: str, **fields: str) -> object:
        """Log what is not in force."""
        ...

    def warning(self, event: str, **fields: str) -> object:
        """Log what is in force, and to be looked at."""
        ...

    def info(self, event: str, **fields: str) -> object:
        """Log what is read, and not used."""
        ...


def log_new(log: Log, event: str, problems: Problems, known: Iterable[Problem]) -> None:
    """Log the problems that are not among those known, each at the level of its severity."""
    silent = set(known)
    for problem in problems:
        if problem not in silent:
            _level(log, problem.severity)(event, code=problem.code, problem=str(problem))


def log_gone(log: Log, problems: Iterable[Problem], now: Iterable[Problem]) -> None:
    """Log the end of problems that are not among those there are now, in the words of their beginning."""
    standing = set(now)
    for problem in problems:
        if problem not in standing:
            said = {"origin": str(problem.origin), "key": str(problem.key) if problem.key else "document"}
            log.info("problem_gone", code=problem.code, problem=str(problem), **said)


def _level(log: Log, severity: Severity) -> Callable[..., object]:
    match severity:
        case Severity.ERROR:
            return log.error
        case Severity.WARNING:
            return log.warning
        case Severity.INFO:
            return log.info
