"""The YAML that manifests are mostly written in, read line by line: several times as quick as by events.

That is block mappings and lists of scalars of one line each, in ASCII, and nothing that could be at fault: no
anchors, tags, flow collections but empty ones, no key twice. Whatever is not plainly of that kind is left to
`meshwright.providers.text.yaml_value`, which alone decides what is wrong; what is read here, it reads the
same.
"""

import functools
import re
import sys
from typing import Final, NamedTuple

from meshwright.providers.text.yaml_scalars import plain_scalar
from meshwright.providers.text.yaml_value import MAX_DEPTH, MAX_NODES

OTHER: Final = object()
"""The answer where a document is not of that kind, or may be wrong."""

_NOTHING: Final = object()
_LIST: Final = object()
_MAPPING: Final = object()

_MAX_LINE: Final = 1000
"""A key and its colon must stand within 1024 characters (YAML 1.2, 7.4)."""

_REMEMBERED: Final = 1024
"""How many lines are known by heart: most are the same in many manifests, and share their text so."""

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
    """What a line says: where it begins, where its content does after a dash (0 for none), key and value."""

    indent: int
    column: int
    key: str | None
    value: object


_EMPTY: Final = _Line(0, 0, None, _NOTHING)


def plain_value(text: str) -> object:
    """Return what a document says that is plainly right, OTHER for any other."""
    if len(text) > MAX_NODES:  # a value takes a character at least
        return OTHER
    builder = _Builder()
    for each in text.split("\n"):
        line = _line(each)
        if line is None or (line is not _EMPTY and not builder.take(line)):
            return OTHER
    return builder.top


class _Builder:
    """Builds a document from its lines; `top` is what it says so far."""

    __slots__ = ("_indents", "_open", "_pending", "top")

    def __init__(self) -> None:
        self.top: object = OTHER
        self._open: list[dict[str, object] | list[object]] = []
        self._indents: list[int] = []
        self._pending: str | None = None  # a key of the innermost mapping whose value may follow

    def take(self, line: _Line) -> bool:
        """Take the next line; say whether it fits in."""
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
        """Say whether as many stand in one another as may, with a value that is an empty one."""
        return len(self._indents) + (value is _LIST or value is _MAPPING) < MAX_DEPTH

    def _container(self, indent: int, *, is_item: bool) -> dict[str, object] | list[object] | None:
        """Return what a line of that indent stands in, None if it stands nowhere."""
        indents, opened = self._indents, self._open
        if self._pending is not None and (indent > indents[-1] or (is_item and indent == indents[-1])):
            return self._begin([] if is_item else {}, indent)
        self._pending = None
        while indents and indents[-1] > indent:
            indents.pop()
            opened.pop()
        if not indents:
            return self._begin([] if is_item else {}, indent) if self.top is OTHER else None
        if not is_item and isinstance(opened[-1], list):  # a list may stand as far left as its key
            indents.pop()
            opened.pop()
        return opened[-1] if indents and indents[-1] == indent else None

    def _begin(
        self, container: dict[str, object] | list[object], indent: int
    ) -> dict[str, object] | list[object]:
        """Open a container, as the value of the key that waits for one."""
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
    """Return a value of a line, which may be known by heart: a list or mapping of its own."""
    if value is _LIST:
        return []
    return {} if value is _MAPPING else value


@functools.lru_cache(_REMEMBERED)
def _line(text: str) -> _Line | None:
    """Return what a line says, _EMPTY for nothing, None if that is not plain."""
    if len(text) > _MAX_LINE:
        return None
    if _NO_CONTENT.fullmatch(text):
        return _EMPTY
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    indent, dash, key, plain, double, single, empty = found.groups()
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
