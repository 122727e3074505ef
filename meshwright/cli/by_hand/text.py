"""The documents of a file with their text: unchanged documents are written as they are."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.cli.by_hand.scalars import scalar, written
from meshwright.cli.errors import CommandFailed
from meshwright.providers.text.documents import documents
from meshwright.providers.text.yaml_value import MAX_DEPTH, yaml_value
from meshwright.specs.codes import Code

_MARKER: Final = re.compile(r"(?:\A|(?<=\n))---(?=\s|\Z)")
_LEAD: Final = re.compile(r"\ufeff?(?:---[ \t]*(?:#[^\r\n]*)?\r?(?:\n|\Z)|[ \t]*(?:#[^\r\n]*)?\r?\n)*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A document and its text, from its marker to the next; `value` is None for one without content."""

    text: str
    value: object = field(repr=False)
    as_json: bool = False

    def written(self, value: Mapping[str, object]) -> str:
        """Return the document's text with `value` as the new content, after the leading comments."""
        if self.as_json:
            return json.dumps(value, indent=4, ensure_ascii=False) + "\n"
        lead = _LEAD.match(self.text)
        text = lead.group() if lead else ""
        if self.text.startswith("---") and not text.startswith("---"):
            text = "---\n"  # the document begins on the line of the marker
        return text + written(value)


def pieces(text: str, file: str) -> tuple[Piece, ...]:
    """Return a file's documents, whose texts together are the file's; raise CommandFailed for a bad one."""
    if _is_json(text):
        return (_piece(text, file, 0, as_json=True),)
    result, line = [], 0
    for item in _split(text):
        result.append(_piece(item, file, line))
        line += item.count("\n")
    return tuple(result)


def _is_json(text: str) -> bool:
    """Return whether a text is JSON; YAML can also begin with a bracket."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    return not any(
        fault.code is Code.BAD_SYNTAX
        for document in documents(text, as_json=True)
        for fault in document.faults
    )


def _split(text: str) -> Iterator[str]:
    """Split before each marker at the beginning of a line, which no scalar can contain (YAML 1.2, 9.1.2)."""
    begins = [match.start() for match in _MARKER.finditer(text)]
    edges = [0, *(number for number in begins if number), len(text)]
    yield from (text[begin:end] for begin, end in itertools.pairwise(edges))


def _piece(text: str, file: str, line: int, *, as_json: bool = False) -> Piece:
    result = documents(text, as_json=as_json)
    for document in result:
        for fault in document.faults:
            raise CommandFailed(f"{file}, line {line + fault.line}: {fault.expected}")
    if len(result) > 1:
        raise CommandFailed(f"{file}, line {line + result[1].line}: begin each document with ---")
    if as_json and result and _is_deep(result[0].value):
        raise CommandFailed(f"{file}, line {result[0].line}: must be nested at most {MAX_DEPTH} deep")
    if as_json or not result:
        return Piece(text, result[0].value if result else None, as_json)
    return Piece(text, yaml_value(result[0].text, 1, scalar)[0])


def _is_deep(value: object) -> bool:
    """Return whether a JSON value is nested deeper than MAX_DEPTH. The YAML reader checks YAML for this."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        within = (item.values() if isinstance(item, dict) else item for item in level)
        level = [item for inner in within for item in inner if isinstance(item, dict | list)]
    return bool(level)
