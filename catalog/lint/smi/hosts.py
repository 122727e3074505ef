"""Problems of Host expressions that never fit a request of a usual client."""

import re
from collections.abc import Iterator
from typing import Final

from catalog.oracle.request.expressions import text_of

_PORT: Final = r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})"
_NAME: Final = r"(?:[A-Za-z0-9_%-]+\.)*[A-Za-z0-9_%-]+\.?"
_SENT: Final = re.compile(rf"(?:{_NAME}|\[[0-9A-Fa-f:.]+\])(?::{_PORT})?")
"""A host as clients send it: a name or an address, optionally with a port."""

_IN_NO_HOST: Final = frozenset("/\\@?#*,;|<>\"'` ^{}()")
"""Characters never sent by clients in a host."""

_PIECE: Final = re.compile(r"\\[^A-Za-z0-9]|\\.|\[(?:\\.|[^\]\\])+\]|\(\?[a-zA-Z]+\)|[\s\S]")
"""The pieces of an expression: escaped characters, classes, flags, single characters."""

_ESCAPED: Final = re.compile(r"\\[^A-Za-z0-9]")
_OPTIONAL: Final = re.compile(r"[*?]|\{0")
"""The quantifiers after an optional piece."""

_HTTP_PORT: Final = ":80"
NO_HOST: Final = (
    "Clients never send this as the host of a request, so the match never fits. Write a name or an "
    "address without scheme and path, for example shop.default."
)
OWN_PORT: Final = (
    "Most clients leave out port 80, because it is the default port of HTTP, so "
    "their requests do not fit. Remove the port; then any port fits."
)


def never_sent(regex: str) -> str:
    """Return why usual clients never send a fitting host for an expression, or an empty text.

    An expression without operators is checked as a whole, and any other by its required characters.
    """
    text = text_of(regex)
    if text is None:
        needed = _needed(regex)
        if any(character in _IN_NO_HOST for character in needed):
            return NO_HOST
        return OWN_PORT if "".join(needed[-3:]) == _HTTP_PORT else ""
    if _SENT.fullmatch(text) is None:
        return NO_HOST
    return OWN_PORT if text.endswith(_HTTP_PORT) else ""


def _needed(regex: str) -> list[str]:
    r"""Return the characters of every fitting text, in order; "" replaces anything else.

    For example `shop\.[a-z]+/books` has `shop.`, "" for the class, and `/books`. An expression with
    alternatives, groups or literals (`\Q`) has an empty list.
    """
    pieces = _PIECE.findall(regex)
    if any(item in "|()" or item == r"\Q" for item in pieces):
        return []
    result: list[str] = []
    for at, item in enumerate(pieces):
        behind = "".join(pieces[at + 1 : at + 3])
        result.extend(_characters(item, optional=_OPTIONAL.match(behind) is not None))
    return result


def _characters(piece: str, *, optional: bool) -> Iterator[str]:
    """Yield the character of a literal piece, or "" for a piece with several meanings or an optional one."""
    if piece in ("^", "$", r"\z", r"\A") or piece.startswith("(?"):
        return
    is_literal = (len(piece) == 1 and piece not in "*+?{},.") or _ESCAPED.fullmatch(piece) is not None
    yield piece[-1] if is_literal and not optional else ""
