"""Words of an action in a template, and the error of templates."""

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
    """Error in a Helm template; the message has the file and the line."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of an action, with its kind (`string`, `number`, `chain`, `name`, `sign`)."""

    kind: str
    text: str

    @property
    def value(self) -> str | int:
        """Return the value of a word that is a string or number."""
        if self.kind == "number":
            return int(self.text)
        return self.text[1:-1] if self.text.startswith("`") else str(ast.literal_eval(self.text))


def tokens(action: str) -> Iterator[Token]:
    """Yield the words of an action. Raises ValueError for any other text."""
    at, end = 0, len(action.rstrip())
    while at < end:
        if (match := _WORD.match(action, at)) is None:
            raise ValueError(f"{action[at:].strip()[:40]!r} is not understood")
        kind = match.lastgroup or ""
        yield Token(kind, match[kind])
        at = match.end()
