"""HTML elements; every text is escaped when it becomes markup, so a name can never be markup."""

import re
from collections.abc import Iterable
from html import escape
from typing import Final, NewType

Markup = NewType("Markup", str)
"""Complete, escaped HTML. Only this module may create Markup from text."""

NOTHING: Final = Markup("")
# A long name may break after a separator, but not between two separators.
_SEAM: Final = re.compile(r"(?<=[/.,:|=&?@_-])(?=[^/.,:|=&?@_\s-])")
_WORD: Final = re.compile(r"\S{18,}")
# Elements without content and end tag (the HTML standard, "void elements").
_VOID: Final = frozenset({"input", "meta", "br", "link"})


def text(value: object) -> Markup:
    """Return a value as escaped HTML text."""
    return Markup(escape(str(value)))


def name(value: object) -> Markup:
    """Return a name as text; a long name may be broken only between parts, for example after `/`."""
    return Markup(_wrapped(str(value)))


def tag(element: str, *inner: Markup, **attributes: str | bool | None) -> Markup:
    """Return an element.

    Trailing `_` of an attribute's name is dropped, and other `_` become `-`: `class_` is class, `aria_label`
    is aria-label. None and False omit the attribute.
    """
    message = "".join(
        f" {item.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for item, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{element}{message}>" + ("" if element in _VOID else f"{joined(inner)}</{element}>"))


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """Return several HTML parts one after the other, with the text `between` them."""
    return Markup(escape(between).join(parts))


def code(value: object) -> Markup:
    """Return a value for typing or for comparing letter by letter."""
    return tag("code", name(value))


def listed(items: Iterable[Markup]) -> Markup:
    """Return an HTML list with one item per line."""
    return tag("ul", *(tag("li", markup) for markup in items))


def detail(summary: Markup, *inner: Markup) -> Markup:
    """Return an HTML summary with content opened by a click."""
    return tag("details", tag("summary", summary), *inner)


def _wrapped(value: str) -> str:
    def seams(match: re.Match[str]) -> str:
        return "<wbr>".join(escape(item) for item in _SEAM.split(match[0]))

    parts, end = [], 0
    for match in _WORD.finditer(value):
        parts += [escape(value[end : match.start()]), seams(match)]
        end = match.end()
    return "".join((*parts, escape(value[end:])))
