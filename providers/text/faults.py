"""Why a document of a file is no good."""

from dataclasses import dataclass

from specs.codes import Code


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a document is no good: a stable code and a sentence, never the document's content."""

    code: Code
    expected: str
    line: int
