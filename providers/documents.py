"""From a file's text to its documents: YAML (several, split at `---`) or JSON, without trusting either.

The text is read by events, so that depth, size and aliases are bounded while reading, before anything
is built. Scalars resolve as in JSON and YAML 1.2, and yes, no, on and off as Kubernetes reads them; what
looks like a date or `12:30` stays text. Keys are always text. A bad document does not cost its neighbours.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from smi.codes import Code

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 500_000
MAX_ALIASES = 100

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})")
_OCTAL = re.compile(r"0o[0-7]{1,99}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,99}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset(word for low in ("true", "yes", "on") for word in (low, low.title(), low.upper()))
_FALSE = frozenset(word for low in ("false", "no", "off") for word in (low, low.title(), low.upper()))
_TEXT_TAGS = frozenset({"tag:yaml.org,2002:str", "!"})
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "null"))
_COLLECTION_TAGS = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!"})
_MERGE = "<<"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a document is no good: a stable code and a sentence, never the document's content."""

    code: Code
    expected: str
    line: int


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
        document = _yaml_document(number, line, chunk)
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


def _yaml_document(number: int, line: int, chunk: str) -> Document:
    builder = _Builder(line)
    try:
        for event in yaml.parse(chunk, Loader=yaml.CSafeLoader):
            builder.take(event)
    except _TooMuchError as error:
        return Document(number, line, builder.root(), (Fault(Code.TOO_LARGE, str(error), builder.line),))
    except yaml.MarkedYAMLError as error:
        at = line + error.problem_mark.line if error.problem_mark else line
        said = f"must be valid YAML: {error.problem or error.context or 'syntax error'}"
        return Document(number, line, builder.root(), (Fault(Code.BAD_SYNTAX, said, at),))
    except yaml.YAMLError:
        said = "must be valid YAML: it holds characters that YAML forbids"
        return Document(number, line, builder.root(), (Fault(Code.BAD_SYNTAX, said, builder.line),))
    return Document(number, line, builder.top, tuple(builder.faults))


class _TooMuchError(Exception):
    """A document passes a bound; the message says which."""


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read; `key` is the key whose value comes next."""

    value: list[object] | dict[str, object]
    anchor: str | None
    key: str | None = None
    size: int = 1
    merged: list[object] = field(default_factory=list)


@dataclass(slots=True)
class _Builder:
    """Builds one document from parser events within the bounds."""

    first_line: int
    top: object = None
    line: int = 1
    faults: list[Fault] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[object, int]] = field(default_factory=dict)
    aliases: int = 0
    nodes: int = 0

    def take(self, event: yaml.Event) -> None:
        """Take the parser's next event; raise _TooMuchError at a bound."""
        self.line = self.first_line + (event.start_mark.line if event.start_mark else 0)
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event.anchor or "")
            case yaml.MappingStartEvent():
                self._start({}, event)
            case yaml.SequenceStartEvent():
                self._start([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()
            case _:
                pass

    def root(self) -> object:
        """Return the document as far as it was built."""
        return self.stack[0].value if self.stack else self.top

    def _fault(self, code: Code, expected: str) -> None:
        self.faults.append(Fault(code, expected, self.line))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if self._expects_key():
            self._set_key(event.value, plain=event.implicit[0])
            return
        try:
            value = _resolve(event)
        except ValueError as error:
            self._fault(Code.BAD_SYNTAX, str(error))
            value = None
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self._add(value, 1)

    def _alias(self, anchor: str) -> None:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise _TooMuchError(f"must use at most {MAX_ALIASES} aliases")
        value, size = self.anchors.get(anchor, (None, 0))
        if size == 0:
            self._fault(Code.BAD_SYNTAX, "must use an alias only after the end of what it stands for")
        if self._expects_key():
            self._set_key(value if isinstance(value, str) else "?", plain=False)
        else:
            self._add(value, max(size, 1))

    def _start(self, value: list[object] | dict[str, object], event: yaml.CollectionStartEvent) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise _TooMuchError(f"must be nested at most {MAX_DEPTH} deep")
        if event.tag and event.tag not in _COLLECTION_TAGS:
            self._fault(Code.BAD_SYNTAX, "must do without tags of its own (!name)")
        if self._expects_key():
            self._fault(Code.BAD_SYNTAX, "must have text as its keys")
        self.stack.append(_Open(value, event.anchor))
        if event.anchor:
            self.anchors.pop(event.anchor, None)

    def _end(self) -> None:
        done = self.stack.pop()
        if isinstance(done.value, dict):
            for merged in done.merged:
                done.value.update({key: value for key, value in _pairs(merged) if key not in done.value})
        if done.anchor:
            self.anchors[done.anchor] = (done.value, done.size)
        if self.stack and self._expects_key():
            self.stack[-1].key = "?"
            return
        self._add(done.value, done.size, counted=True)

    def _expects_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _set_key(self, key: str, *, plain: bool) -> None:
        here = self.stack[-1]
        here.key = key
        if key in here.value and not (plain and key == _MERGE):
            self._fault(Code.DUPLICATE_KEY, f"must have each key once; {key[:60]!r} stands twice")

    def _add(self, value: object, size: int, *, counted: bool = False) -> None:
        """Add a value to what is open. `counted` says that its nodes were counted one by one already."""
        self.nodes += 1 if counted else size
        if self.nodes > MAX_NODES:
            raise _TooMuchError(f"must have at most {MAX_NODES} values, those of aliases included")
        if not self.stack:
            self.top = value
            return
        here = self.stack[-1]
        here.size += size
        if isinstance(here.value, list):
            here.value.append(value)
            return
        if here.key == _MERGE:
            here.merged.extend(value if isinstance(value, list) else [value])
            if not all(isinstance(item, dict) for item in here.merged):
                self._fault(Code.BAD_SYNTAX, "must merge (<<) mappings only")
        elif here.key is not None:
            here.value.setdefault(here.key, value)
        here.key = None


def _pairs(value: object) -> tuple[tuple[str, object], ...]:
    return tuple(value.items()) if isinstance(value, dict) else ()


def _resolve(event: yaml.ScalarEvent) -> object:
    """Give a scalar its type; raise ValueError with a sentence where it has none."""
    if event.tag is None:
        return _plain(event.value) if event.implicit[0] else event.value
    if event.tag in _TEXT_TAGS:
        return event.value
    if event.tag in _PLAIN_TAGS:
        return _plain(event.value)
    raise ValueError("must do without tags of its own (!name)")


def _plain(text: str) -> object:
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    return float(text) if len(text) <= 400 and _FLOAT.fullmatch(text) else text


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
    return (Document(1, line, value, tuple(faults)),)


def _no_constant(name: str) -> object:
    raise ValueError(name)
