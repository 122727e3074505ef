"""Faults of a YAML document, as found by the parser."""

from dataclasses import dataclass, replace

from meshwright.mesh.problems.tally import MOST
from meshwright.specs.codes import Code


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a document: a stable code and a sentence, without the document's content.

    `more` is the number of further faults of the same code without a Fault of their own.
    """

    code: Code
    expected: str
    line: int
    more: int = 0


class Faults:
    """Faults of one document in order, at most 200 of each code; the last of a code counts the rest."""

    __slots__ = ("_counts", "_faults")

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._counts: dict[Code, int] = {}

    def add(self, code: Code, expected: str, line: int) -> None:
        """Add a fault of the document at a line."""
        count = self._counts[code] = self._counts.get(code, 0) + 1
        if count <= MOST:
            self._faults.append(Fault(code, expected, line))

    def all(self) -> tuple[Fault, ...]:
        """Return all faults of the document, in order."""
        last = {fault.code: at for at, fault in enumerate(self._faults)}
        return tuple(
            replace(fault, more=max(self._counts[fault.code] - MOST, 0)) if last[fault.code] == at else fault
            for at, fault in enumerate(self._faults)
        )
