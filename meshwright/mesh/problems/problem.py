"""Problems with objects: one shape, one order, and one log line for all parts of the program."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Order, Origin
from meshwright.mesh.terminal.printable import on_one_line


class Severity(enum.StrEnum):
    """ERROR: the object, or a part of the object, does not apply.

    WARNING: the object applies, but must be checked. INFO: the content is not used.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of an object, or of the content at `origin` if there is no object to name.

    `code` is stable. `field` is a path such as `spec.rules[0].kind`; `value` is the content, shortened and
    never secret; `expected` is a correct content.
    """

    code: str
    severity: Severity
    origin: Origin
    key: ObjectKey | None = None
    field: str = ""
    value: str = ""
    expected: str

    @property
    def clause(self) -> str:
        """The problem in one line without the object's name, for readers who know the object."""
        result = " ".join(part for part in (self.field, f"is {self.value}" if self.value else "") if part)
        return on_one_line(f"{result + ': ' if result else ''}{self.expected}")

    def __str__(self) -> str:
        named = str(self.key) if self.key else "document"
        return f"{self.code} {on_one_line(f'{self.origin}: {named}')}: {self.clause}"


Problems = tuple[Problem, ...]
"""Problems of one reporter: sorted, without duplicates."""


def ordered(problems: Iterable[Problem]) -> Problems:
    """Return problems sorted by origin, then by code and field, without duplicates."""
    return tuple(sorted(set(problems), key=_order))


def _order(problem: Problem) -> tuple[Order, str, str, str, str, str, str]:
    # `str`, because a key may be None. The last two make the order of equal places deterministic.
    key, severity = str(problem.key), problem.severity.value
    return (problem.origin.order, problem.code, key, problem.field, problem.value, problem.expected, severity)


class Log(Protocol):
    """Logger for problems: the methods of a structlog logger that are used."""

    def error(self, event: str, **fields: str) -> object:
        """Log a problem because of which an object, or a part of the object, does not apply."""
        ...

    def warning(self, event: str, **fields: str) -> object:
        """Log a problem of an object that applies, but must be checked."""
        ...

    def info(self, event: str, **fields: str) -> object:
        """Log a problem of content that is read, but not used."""
        ...


def log_new(log: Log, event: str, problems: Problems, known: Iterable[Problem]) -> None:
    """Log the problems that are not in `known`, each at the level of its severity."""
    silent = set(known)
    for problem in problems:
        if problem not in silent:
            _level(log, problem.severity)(event, code=problem.code, problem=str(problem))


def log_gone(log: Log, problems: Iterable[Problem], now: Iterable[Problem]) -> None:
    """Log the end of problems that are not in `now` any more, in the same words as their begin."""
    standing = set(now)
    for problem in problems:
        if problem not in standing:
            fields = {"origin": str(problem.origin), "key": str(problem.key) if problem.key else "document"}
            log.info("problem resolved", code=problem.code, problem=str(problem), **fields)


def _level(log: Log, severity: Severity) -> Callable[..., object]:
    match severity:
        case Severity.ERROR:
            return log.error
        case Severity.WARNING:
            return log.warning
        case Severity.INFO:
            return log.info
