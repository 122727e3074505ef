r"""Regular expressions (RE2) in a form that may stand in the middle of a larger expression.

An expression of a user stands for a whole text: a host, a path, or one of the two names in the path of a gRPC
call. In a larger expression more text precedes or follows it. Therefore

- anchors where the text begins or ends (`^`, `\A`, `$`, `\z`) are left out, because the expression must fit
  the whole text anyway;
- an open literal (`\Q`) is closed;
- named groups lose their names, because the larger expression may have each name once.

For example, `^shop\.(?P<name>Cart|Bill)$` becomes `shop\.(Cart|Bill)`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)"
    r"|\\."
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"
    r"|\(\?[a-zA-Z-]+\)"
    r"|\((?:\?[a-zA-Z-]*:|\?P?<\w+>)?"
    r"|\{\d+(?:,\d*)?\}"
    r"|.",
    re.DOTALL,
)
_NAMED: Final = re.compile(r"\(\?P?<\w+>")
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_REPETITION: Final = re.compile(r"[*+]|\{.+\}")
_OPTION: Final = "?"
"""What may be absent still stands once at most, so it does not follow itself."""
_STARTS: Final = ("^", r"\A")
_ENDS: Final = ("$", r"\z")
REMEMBERED: Final = 1024
"""Number of cached expressions: all callers of a service have the same ones."""


@lru_cache(REMEMBERED)
def inner_expression(regex: str) -> str:
    """Return a valid expression for a whole text in a form for the middle of a larger expression."""
    tokens = _TOKEN.findall(regex)
    partners = _partners(tokens)
    forward = range(len(tokens))
    left_out = {
        *_anchors(tokens, forward, partners, _STARTS),
        *_anchors(tokens, forward[::-1], partners, _ENDS),
    }
    return "".join(_inner(token) for index, token in enumerate(tokens) if index not in left_out)


def _inner(token: str) -> str:
    if token.startswith(r"\Q") and not token.endswith(r"\E"):
        return f"{token}\\E"
    return "(" if _NAMED.fullmatch(token) else token


def _partners(tokens: Sequence[str]) -> dict[int, int]:
    """Return the index of the other parenthesis for each parenthesis of a group."""
    result: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token == ")":  # noqa: S105 - a part of an expression
            result[index] = opened.pop()
            result[result[index]] = index
        elif token.startswith("(") and not _FLAGS.fullmatch(token):
            opened.append(index)
    return result


def _anchors(
    tokens: Sequence[str], order: range, partners: dict[int, int], anchors: tuple[str, ...]
) -> Iterator[int]:
    """Yield the indexes of anchors with nothing between them and the side of the text where `order` begins.

    Repeated anchors stay, and so do anchors in a repeated group, because such a group follows itself. Such
    anchors are of no use; with them the larger expression may fit fewer texts, but never more.
    """
    outermost, outside = True, [True]
    for index in order:
        token, partner = tokens[index], partners.get(index)
        if partner is None:
            if token == "|":  # noqa: S105 - a part of an expression
                outermost = outside[-1]
            elif token in anchors and outermost and not _may_vary(tokens, index):
                yield index
            elif token != _OPTION and not _FLAGS.fullmatch(token):
                outermost = False
        elif (partner - index) * order.step > 0:
            outermost = outermost and not _is_repeated(tokens, max(index, partner))
            outside.append(outermost)
        else:
            outside.pop()
            outermost = False


def _may_vary(tokens: Sequence[str], index: int) -> bool:
    return _is_repeated(tokens, index) or tokens[index + 1 : index + 2] == [_OPTION]


def _is_repeated(tokens: Sequence[str], index: int) -> bool:
    return _REPETITION.fullmatch("".join(tokens[index + 1 : index + 2])) is not None
