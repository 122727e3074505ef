"""From a file's text to its documents: YAML (several, split at `---`) or JSON, without trusting either.

A bad document does not cost its neighbours.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from providers.text.faults import Fault
from providers.text.yaml_value import yaml_value
from specs.codes import Code

MAX_BYTES = 4 * 1024 * 1024

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its number (from 1), first line, content, and faults if there are any.

    With faults, `value` is what could be made of it nevertheless: enough to name the object, no more.
    """

    number: int
    line: int
    value: object = None
    faults: tuple[Fault, ...] = ()


def documents(text: str, *, as_json: bool = False) -> tuple[Document, ...]:
    """Read a file's documents in their order; empty ones are left out and not counted."""
    if as_json:
        return _json_document(text)
    found = []
    for number, (line, chunk) in enumerate(_chunks(text), start=1):
        document = Document(number, line, *yaml_value(chunk, line))
        if document.value is not None or document.faults:
            found.append(document)
    return tuple(found)


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Split at lines that begin with a document marker, which no scalar can contain (YAML 1.2, 9.1.2)."""
    lines: list[str] = []
    start = 1
    for number, line in enumerate(_LINE.findall(text), start=1):
        if re.match(r"(?:---|\.\.\.)(?:\s|$)", line):
            if _has_content(lines):
                yield _trimmed(start, lines)
            # A marker's own line may hold content; blanks keep its column.
            lines, start = ["   " + line[3:] if line.startswith("---") else "\n"], number
        else:
            lines.append(line)
    if _has_content(lines):
        yield _trimmed(start, lines)


def _has_content(lines: list[str]) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") and line[0] != "%" for line in lines)


def _trimmed(start: int, lines: list[str]) -> tuple[int, str]:
    """Drop directives, comments and blanks before the content, so that its first line is told."""
    first = 0
    while not _has_content(lines[first : first + 1]):
        first += 1
    return start + first, "".join(lines[first:])


def _json_document(text: str) -> tuple[Document, ...]:
    if not text.strip():
        return ()
    line = 1 + len(text[: len(text) - len(text.lstrip())].splitlines())
    faults: list[Fault] = []

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in items:
            if key in found:
                said = f"must have each key once; {key[:60]!r} stands twice"
                faults.append(Fault(Code.DUPLICATE_KEY, said, line))
            found.setdefault(key, value)
        return found

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        fault = Fault(Code.BAD_SYNTAX, f"must be valid JSON: {error.msg}", error.lineno)
        return (Document(1, line, None, (fault,)),)
    except RecursionError:
        return (Document(1, line, None, (Fault(Code.TOO_LARGE, "must not be nested as deep", line),)),)
    except ValueError:
        fault = Fault(Code.BAD_SYNTAX, "must be valid JSON: a number is no number of JSON", line)
        return (Document(1, line, None, (fault,)),)
    if "\\ud" in text.lower() and not _is_encodable(value):
        said = "must be valid JSON: an escape is half a character (a surrogate without its pair)"
        return (Document(1, line, None, (Fault(Code.BAD_SYNTAX, said, line),)),)
    return (Document(1, line, value, tuple(faults)),)


def _is_encodable(value: object) -> bool:
    """Say whether all text of a value can be sent on; YAML's reader has seen to it by itself."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(name: str) -> object:
    raise ValueError(name)
