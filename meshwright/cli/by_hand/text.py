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
        """Return the text with another value, after the document's leading comments."""
        if self.as_json:
            return json.dumps(value, indent=4, ensure_ascii=False) + "\n"
        lead = _LEAD.match(self.text)
        said = lead.group() if lead else ""
        if self.text.startswith("---") and not said.startswith("---"):
            said = "---\n"  # the document begins on the line of the marker
        return said + written(value)


def pieces(text: str, file: str) -> tuple[Piece, ...]:
    """Return a file's documents, whose texts together are the file's; raise CommandFailed for a bad one."""
    if _is_json(text):
        return (_piece(text, file, 0, as_json=True),)
    found, line = [], 0
    for each in _split(text):
        found.append(_piece(each, file, line))
        line += each.count("\n")
    return tuple(found)


def _is_json(text: str) -> bool:
    """Return whether a text is JSON; YAML can also begin with a bracket."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    return not any(
        fault.code is Code.BAD_SYNTAX for each in documents(text, as_json=True) for fault in each.faults
    )


def _split(text: str) -> Iterator[str]:
    """Split before each marker at the beginning of a line, which no scalar can contain (YAML 1.2, 9.1.2)."""
    begins = [match.start() for match in _MARKER.finditer(text)]
    edges = [0, *(each for each in begins if each), len(text)]
    yield from (text[begin:end] for begin, end in itertools.pairwise(edges))


def _piece(text: str, file: str, line: int, *, as_json: bool = False) -> Piece:
    found = documents(text, as_json=as_json)
    for each in found:
        for fault in each.faults:
            raise CommandFailed(f"{file}, line {line + fault.line}: {fault.expected}")
    if len(found) > 1:
        raise CommandFailed(f"{file}, line {line + found[1].line}: begin each document with ---")
    if as_json and found and _is_deep(found[0].value):
        raise CommandFailed(f"{file}, line {found[0].line}: must be nested at most {MAX_DEPTH} deep")
    if as_json or not found:
        return Piece(text, found[0].value if found else None, as_json)
    return Piece(text, yaml_value(found[0].text, 1, scalar)[0])


def _is_deep(value: object) -> bool:
    """Return whether a JSON value is nested too deeply; the YAML reader checks this itself."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        within = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for inner in within for each in inner if isinstance(each, dict | list)]
    return bool(level)
