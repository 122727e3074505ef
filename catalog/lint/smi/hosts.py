"""Expressions for hosts that fit nothing that a usual client sends as the host of a request."""

import re
from collections.abc import Iterator
from typing import Final

from catalog.oracle.request.expressions import text_of

_PORT: Final = r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})"
_NAME: Final = r"(?:[A-Za-z0-9_%-]+\.)*[A-Za-z0-9_%-]+\.?"
_SENT: Final = re.compile(rf"(?:{_NAME}|\[[0-9A-Fa-f:.]+\])(?::{_PORT})?")
"""A host as clients send it: a name or an address, and a port."""

_IN_NO_HOST: Final = frozenset("/\\@?#*,;|<>\"'` ^{}()")
"""Characters of which no host that a client sends has one."""

_PIECE: Final = re.compile(r"\\[^A-Za-z0-9]|\\.|\[(?:\\.|[^\]\\])+\]|\(\?[a-zA-Z]+\)|[\s\S]")
"""The pieces of an expression: escaped characters, classes, flags, single characters."""

_ESCAPED: Final = re.compile(r"\\[^A-Za-z0-9]")
_OPTIONAL: Final = re.compile(r"[*?]|\{0")
"""The quantifiers that follow an optional piece."""

_HTTP_PORT: Final = ":80"
NO_HOST: Final = (
    "no client sends this as a host: write a name or an address, such as shop.default, without URL"
)
OWN_PORT: Final = "most clients leave out port 80, which is HTTP's; leave it out here, so that any port fits"


def never_sent(regex: str) -> str:
    """Return why no usual client sends a host that an expression fits; empty if a client may.

    An expression without operators is judged as a whole; any other by the characters that it requires.
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
    r"""Return the characters that every fitting text has, in their order; "" stands for anything else.

    Such as `shop\.[a-z]+/books`: `shop.`, "" for the class, `/books`. Of expressions with alternatives,
    groups or literals (`\Q`) nothing is known.
    """
    pieces = _PIECE.findall(regex)
    if any(each in "|()" or each == r"\Q" for each in pieces):
        return []
    found: list[str] = []
    for at, each in enumerate(pieces):
        behind = "".join(pieces[at + 1 : at + 3])
        found.extend(_characters(each, optional=_OPTIONAL.match(behind) is not None))
    return found


def _characters(piece: str, *, optional: bool) -> Iterator[str]:
    """Yield the character for which a piece stands; "" for a piece that stands for several, or none."""
    if piece in ("^", "$", r"\z", r"\A") or piece.startswith("(?"):
        return
    is_literal = (len(piece) == 1 and piece not in "*+?{},.") or _ESCAPED.fullmatch(piece) is not None
    yield piece[-1] if is_literal and not optional else ""
