"""Why a document of a file is no good."""

from dataclasses import dataclass, replace

from meshwright.mesh.problems.tally import MOST
from meshwright.specs.codes import Code


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a document is no good: a stable code and a sentence, never the document's content.

    `more` counts further faults of the same code for which there is no Fault.
    """

    code: Code
    expected: str
    line: int
    more: int = 0


class Faults:
    """Faults of one document in their order, at most 200 of each code; the last of a code counts the rest."""

    __slots__ = ("_counts", "_found")

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._counts: dict[Code, int] = {}

    def add(self, code: Code, expected: str, line: int) -> None:
        """Add a fault."""
        count = self._counts[code] = self._counts.get(code, 0) + 1
        if count <= MOST:
            self._found.append(Fault(code, expected, line))

    def said(self) -> tuple[Fault, ...]:
        """Return all of them."""
        last = {each.code: at for at, each in enumerate(self._found)}
        return tuple(
            replace(each, more=max(self._counts[each.code] - MOST, 0)) if last[each.code] == at else each
            for at, each in enumerate(self._found)
        )
