"""Fast reader for the simple YAML of most manifests: line by line, several times as fast as parser events.

Simple means: block mappings and lists of scalars on one line each, in ASCII, without anchors, tags, repeated
keys, or flow collections other than `[]` and `{}`. For any other document, and for every possible fault, the
answer is OTHER, and `meshwright.providers.text.yaml_value` reads the document. Both readers return the same
value for a document that both accept.
"""

import functools
import re
import sys
from typing import Final, NamedTuple

from meshwright.providers.text.yaml_scalars import plain_scalar
from meshwright.providers.text.yaml_value import MAX_DEPTH, MAX_NODES

OTHER: Final = object()
"""Answer for a document that is not simple, or may have a fault."""

_NOTHING: Final = object()
_LIST: Final = object()
_MAPPING: Final = object()

_MAX_LINE: Final = 1000
"""Maximum characters of a line; a key and its colon must be within 1024 characters (YAML 1.2, 7.4)."""

_REMEMBERED: Final = 1024
"""Number of cached lines; most lines occur in many manifests, and then share their text."""

_LINE: Final = re.compile(
    r"""
    (?P<indent>\ *)
    (?P<dash>-\ +)?
    (?:(?P<key>\w[\w./-]*):(?=\ |\Z)\ *)?
    (?:
        (?P<plain>
            (?:[\w./^$(~+<=;\\]|-(?=[!-~]))[!-9;-~]*    # no indicator first, and no colon
            (?:(?::(?=[!-~])|\ +(?=[!-"$-~]))[!-9;-~]*)*  # colons before text, blanks before anything but a #
        )
        |"(?P<double>[\ !\#-\[\]-~]*)"
        |'(?P<single>[\ -&(-~]*)'
        |(?P<empty>\[\]|\{\})
    )?
    (?:\ +\#[\ -~]*|\ *)
    """,
    re.VERBOSE | re.ASCII,
)
_NO_CONTENT: Final = re.compile(r" *(?:#[ -~]*)?")


class _Line(NamedTuple):
    """A parsed line: indent, column of the content after a dash (0: without a dash), key and value."""

    indent: int
    column: int
    key: str | None
    value: object


_EMPTY: Final = _Line(0, 0, None, _NOTHING)


def plain_value(text: str) -> object:
    """Return the value of a simple, valid YAML document, or OTHER for any other document."""
    if len(text) > MAX_NODES:  # a value has at least one character
        return OTHER
    builder = _Builder()
    for item in text.split("\n"):
        line = _line(item)
        if line is None or (line is not _EMPTY and not builder.take(line)):
            return OTHER
    return builder.top


class _Builder:
    """Builder of a YAML document from its lines; `top` is the value so far."""

    __slots__ = ("_indents", "_open", "_pending", "top")

    def __init__(self) -> None:
        self.top: object = OTHER
        self._open: list[dict[str, object] | list[object]] = []
        self._indents: list[int] = []
        self._pending: str | None = None  # key of the innermost mapping, with a value that may follow

    def take(self, line: _Line) -> bool:
        """Add the next line to the document; return whether the line has a supported form."""
        indent, column, key, value = line
        here = self._container(indent, is_item=column > 0)
        if (column > 0) is not isinstance(here, list):
            return False
        if isinstance(here, list):
            if key is None:
                here.append(_fresh(value))
                return self._is_bounded(value)
            item: dict[str, object] = {}
            here.append(item)
            self._begin(item, column)
            here = item
        if here is None or key is None or key in here:
            return False
        here[key] = None if value is _NOTHING else _fresh(value)
        self._pending = key if value is _NOTHING else None
        return self._is_bounded(value)

    def _is_bounded(self, value: object) -> bool:
        """Return whether the document's depth is within the bound, also with `value` as a collection."""
        return len(self._indents) + (value is _LIST or value is _MAPPING) < MAX_DEPTH

    def _container(self, indent: int, *, is_item: bool) -> dict[str, object] | list[object] | None:
        """Return the collection for a line with this indent, or None if the indent matches none."""
        indents, opened = self._indents, self._open
        if self._pending is not None and (indent > indents[-1] or (is_item and indent == indents[-1])):
            return self._begin([] if is_item else {}, indent)
        self._pending = None
        while indents and indents[-1] > indent:
            indents.pop()
            opened.pop()
        if not indents:
            return self._begin([] if is_item else {}, indent) if self.top is OTHER else None
        if not is_item and isinstance(opened[-1], list):  # a list may have the indent of its key
            indents.pop()
            opened.pop()
        return opened[-1] if indents and indents[-1] == indent else None

    def _begin(
        self, container: dict[str, object] | list[object], indent: int
    ) -> dict[str, object] | list[object]:
        """Open a collection, as the value of the pending key if there is one."""
        if self._pending is not None:
            here = self._open[-1]
            if isinstance(here, dict):
                here[self._pending] = container
            self._pending = None
        elif not self._open:
            self.top = container
        self._open.append(container)
        self._indents.append(indent)
        return container


def _fresh(value: object) -> object:
    """Return a line's value, with a new list or mapping because cached lines are shared."""
    if value is _LIST:
        return []
    return {} if value is _MAPPING else value


@functools.lru_cache(_REMEMBERED)
def _line(text: str) -> _Line | None:
    """Return the parsed line, _EMPTY for a blank line or comment, None for any other line."""
    if len(text) > _MAX_LINE:
        return None
    if _NO_CONTENT.fullmatch(text):
        return _EMPTY
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    indent, dash, key, plain, double, single, empty = match.groups()
    value: object = _NOTHING
    if plain is not None:
        value = plain_scalar(plain)
    elif double is not None or single is not None:
        value = double or single or ""
    elif empty is not None:
        value = _LIST if empty == "[]" else _MAPPING
    if key is None and (dash is None or value is _NOTHING):
        return None
    if isinstance(value, str):
        value = sys.intern(value)
    column = len(indent) + len(dash) if dash else 0
    return _Line(len(indent), column, key and sys.intern(key), value)
