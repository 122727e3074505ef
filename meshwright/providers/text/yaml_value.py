"""Reader for one YAML document, by parser events, within bounds.

Depth, size and aliases are checked during reading, before a value is built. Keys are always text.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import yaml

from meshwright.providers.text.faults import Fault, Faults
from meshwright.providers.text.yaml_scalars import resolve
from meshwright.specs.codes import Code

MAX_DEPTH = 64
MAX_NODES = 500_000
MAX_ALIASES = 100

_COLLECTION_TAGS = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!"})
_MERGE = "<<"


def yaml_value(
    text: str, line: int, scalar: Callable[[yaml.ScalarEvent], object] = resolve
) -> tuple[object, tuple[Fault, ...]]:
    """Return the value of a document, as far as it could be read, and its faults; `line` is its first line.

    `scalar` returns the value of a scalar, and raises ValueError with a sentence for an invalid one.
    """
    builder = _Builder(line, scalar)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except _TooMuchError as error:
        return builder.root(), (Fault(Code.TOO_LARGE, str(error), builder.line),)
    except yaml.MarkedYAMLError as error:
        at = line + error.problem_mark.line if error.problem_mark else line
        message = f"must be valid YAML: {error.problem or error.context or 'syntax error'}"
        return builder.root(), (Fault(Code.BAD_SYNTAX, message, at),)
    except yaml.YAMLError:
        message = "must be valid YAML: the text has control characters that YAML does not allow"
        return builder.root(), (Fault(Code.BAD_SYNTAX, message, builder.line),)
    return builder.top, builder.faults.all()


class _TooMuchError(Exception):
    """A YAML document exceeds a bound, which the message names."""


@dataclass(slots=True)
class _OpenNode:
    """A list or mapping of the document that has not ended; `key` is the key of the next value."""

    value: list[object] | dict[str, object]
    anchor: str | None
    key: str | None = None
    size: int = 1
    merged: list[object] = field(default_factory=list)


@dataclass(slots=True)
class _Builder:
    """Builder of one YAML document from parser events, within the bounds."""

    first_line: int
    scalar: Callable[[yaml.ScalarEvent], object]
    top: object = None
    line: int = 1
    faults: Faults = field(default_factory=Faults)
    stack: list[_OpenNode] = field(default_factory=list)
    anchors: dict[str, tuple[object, int]] = field(default_factory=dict)
    aliases: int = 0
    nodes: int = 0

    def take(self, event: yaml.Event) -> None:
        """Process the next event of the YAML parser; raises _TooMuchError at a bound."""
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
        """Return the value of the document as far as it was built."""
        return self.stack[0].value if self.stack else self.top

    def _fault(self, code: Code, expected: str) -> None:
        self.faults.add(code, expected, self.line)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if self._expects_key():
            self._set_key(event.value, plain=event.implicit[0])
            return
        try:
            value = self.scalar(event)
        except ValueError as error:
            self._fault(Code.BAD_SYNTAX, str(error))
            value = None
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self._add(value, 1)

    def _alias(self, anchor: str) -> None:
        self.aliases += 1
        # A few kilobytes of nested aliases can expand to billions of values ("billion laughs").
        if self.aliases > MAX_ALIASES:
            raise _TooMuchError(f"must use at most {MAX_ALIASES} aliases")
        value, size = self.anchors.get(anchor, (None, 0))
        if size == 0:
            self._fault(Code.BAD_SYNTAX, "must use an alias (*name) only after the end of its anchor (&name)")
        if self._expects_key():
            self._set_key(value if isinstance(value, str) else "?", plain=False)
        else:
            self._add(value, max(size, 1))

    def _start(self, value: list[object] | dict[str, object], event: yaml.CollectionStartEvent) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise _TooMuchError(f"must have at most {MAX_DEPTH} levels of nesting")
        if event.tag and event.tag not in _COLLECTION_TAGS:
            self._fault(Code.BAD_SYNTAX, "must not use YAML tags (!name)")
        if self._expects_key():
            self._fault(Code.BAD_SYNTAX, "must have only text as keys")
        self.stack.append(_OpenNode(value, event.anchor))
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
            self._fault(Code.DUPLICATE_KEY, f"must have each key only once; {key[:60]!r} occurs twice")

    def _add(self, value: object, size: int, *, counted: bool = False) -> None:
        """Add a value to the open collection. With `counted`, its nodes have been counted already."""
        self.nodes += 1 if counted else size
        if self.nodes > MAX_NODES:
            raise _TooMuchError(f"must have at most {MAX_NODES} values, including those of aliases")
        if not self.stack:
            self.top = value
            return
        here = self.stack[-1]
        here.size += size
        if isinstance(here.value, list):
            here.value.append(value)
            return
        if here.key == _MERGE:
            added = value if isinstance(value, list) else [value]
            here.merged.extend(added)
            if not all(isinstance(item, dict) for item in added):
                self._fault(Code.BAD_SYNTAX, "must merge (<<) only mappings")
        elif here.key is not None:
            here.value.setdefault(here.key, value)  # a repeated key is a fault; its first value is kept
        here.key = None


def _pairs(value: object) -> tuple[tuple[str, object], ...]:
    return tuple(value.items()) if isinstance(value, dict) else ()
