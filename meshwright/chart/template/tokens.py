"""The words of an action, and what is wrong with one."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
      | (?P<number>-?\d+(?![\w.]))
      | (?P<chain>(?:\$\w*)?(?:\.[A-Za-z_]\w*)+|\$\w*|\.)
      | (?P<name>[A-Za-z]\w*)
      | (?P<sign>:?=|[()|,])
    )""",
    re.VERBOSE,
)


class TemplateError(Exception):
    """A template cannot be read or rendered: the message names its file and line."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word: its kind (`string`, `number`, `chain`, `name`, `sign`) and how it is written."""

    kind: str
    text: str

    @property
    def value(self) -> str | int:
        """Return what a string or number says."""
        if self.kind == "number":
            return int(self.text)
        return self.text[1:-1] if self.text.startswith("`") else str(ast.literal_eval(self.text))


def tokens(action: str) -> Iterator[Token]:
    """Yield the words of an action; raise ValueError for what is none."""
    at, end = 0, len(action.rstrip())
    while at < end:
        if (found := _WORD.match(action, at)) is None:
            raise ValueError(f"{action[at:].strip()[:40]!r} is not understood")
        kind = found.lastgroup or ""
        yield Token(kind, found[kind])
        at = found.end()
