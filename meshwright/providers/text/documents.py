"""Parser from a file's text to its documents: YAML (several, separated by `---`) or JSON, from any author.

An invalid document does not affect its neighbours.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from meshwright.providers.text.faults import Fault, Faults
from meshwright.providers.text.yaml_lines import OTHER, plain_value
from meshwright.providers.text.yaml_scalars import as_written, resolve
from meshwright.providers.text.yaml_value import yaml_value
from meshwright.specs.codes import Code

MAX_BYTES = 4 * 1024 * 1024

_MARKER: Final = re.compile(r"[\r\n](?:---|\.\.\.)(?=\s|\Z)")
_ENDS: Final = re.compile(r"\r\n|\r|\n")
_NO_CONTENT: Final = re.compile(r"[^\S\r\n]*(?:#[^\r\n]*)?|%[^\r\n]*")
_LEAD: Final = re.compile(rf"(?:(?:{_NO_CONTENT.pattern})(?:{_ENDS.pattern}))*")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its number (from 1), first line, content, faults and text.

    With faults, `value` is a partial content: enough to name the object, and not meant for more.
    """

    number: int
    line: int
    value: object = None
    faults: tuple[Fault, ...] = ()
    text: str = field(default="", compare=False, repr=False)


def documents(text: str, *, as_json: bool = False, as_text: bool = False) -> tuple[Document, ...]:
    """Return the documents of a file in order; empty documents are left out and not counted.

    Text that is one JSON object is read as JSON whatever the name of the file, as kubectl does. YAML lacks
    JSON's surrogate pairs, which for example `json.dump` writes for an emoji. With `as_text`, YAML scalars
    stay text as written, or None.
    """
    if as_json or (not as_text and _is_json(text)):
        return _json_document(text)
    result = []
    for number, (line, chunk) in enumerate(_chunks(text), start=1):
        value, faults = OTHER if as_text else plain_value(chunk), tuple[Fault, ...]()
        if value is OTHER:
            value, faults = yaml_value(chunk, line, as_written if as_text else resolve)
        if value is not None or faults:
            result.append(Document(number, line, value, faults, chunk))
    return tuple(result)


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Split at lines with a document marker, which a scalar cannot contain (YAML 1.2, 9.1.2).

    Directives, comments and blank lines before the content are dropped, so that the reported line is the
    first line of content.
    """
    begin, line, is_marked = 0, 1, False
    for end in (*(match.start() for match in _MARKER.finditer("\n" + text)), len(text)):
        part = text[begin:end]
        chunk = _without_marker(part) if is_marked else part
        content = _LEAD.sub("", chunk, count=1)
        if not _NO_CONTENT.fullmatch(content):
            yield line + _line_count(chunk[: len(chunk) - len(content)]), content
        begin, line, is_marked = end, line + _line_count(part), True


def _without_marker(part: str) -> str:
    """Drop a marker. Content after `---` keeps its column; the rest of a `...` line is dropped."""
    if part.startswith("-"):
        return f"   {part[3:]}"
    end = _ENDS.search(part)
    return part[end.start() :] if end else ""


def _line_count(text: str) -> int:
    return len(_ENDS.findall(text)) if "\r" in text else text.count("\n")


def _is_json(text: str) -> bool:
    """Return whether a text is one JSON object; other texts that begin with a brace are YAML's flow style."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _json_document(text: str) -> tuple[Document, ...]:
    if not text.strip():
        return ()
    line = 1 + len(text[: len(text) - len(text.lstrip())].splitlines())
    faults = Faults()

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in items:
            if key in result:
                said = f"must have each key only once; {key[:60]!r} occurs twice"
                faults.add(Code.DUPLICATE_KEY, said, line)
            result.setdefault(key, value)
        return result

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        fault = Fault(Code.BAD_SYNTAX, f"must be valid JSON: {error.msg}", error.lineno)
        return (Document(1, line, None, (fault,), text),)
    except RecursionError:
        return (
            Document(1, line, None, (Fault(Code.TOO_LARGE, "must not be nested this deeply", line),), text),
        )
    except ValueError:
        fault = Fault(
            Code.BAD_SYNTAX,
            "must be valid JSON: NaN, Infinity and numbers of more than 4300 digits are not allowed",
            line,
        )
        return (Document(1, line, None, (fault,), text),)
    if "\\ud" in text.lower() and not _is_encodable(value):
        message = (
            "must be valid JSON: an escape such as \\ud800 is half of a character (a "
            "surrogate without its pair)"
        )
        return (Document(1, line, None, (Fault(Code.BAD_SYNTAX, message, line),), text),)
    return (Document(1, line, value, faults.all(), text),)


def _is_encodable(value: object) -> bool:
    """Return whether all text of a JSON value is valid Unicode; YAML's reader checks this itself."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(name: str) -> object:
    raise ValueError(name)
