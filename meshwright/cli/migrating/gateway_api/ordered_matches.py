"""Matches in an order that the Gateway API keeps.

SMI decides by order: the first match that fits a request. The Gateway API decides by the matches themselves:
one with a method goes before one without, then the one with more headers. So where an earlier match is less
specific than a later one, requests that fit both would get the later one's backends. For these requests a
match is added that requires both, with the earlier one's action. For example:

    1. any request with `x-beta: yes`  -> beta
    2. GET                             -> stable

gets `GET with x-beta: yes -> beta` before both. Some pairs have no such match, because a match of the Gateway
API has one path and one value for each header; `OrderError` names them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from catalog.oracle.request.expressions import fits_in_full, text_of
from catalog.policy.objects.gateway_precedence import specificity
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch

GREATEST_NUMBER: Final = 128
"""Maximum number of matches of a route, by the definition of HTTPRoute."""

_EXACT: Final = re.compile(r"/[A-Za-z0-9/\-._~%!$&'()*+,;=:]{0,1023}")
_REFUSED: Final = re.compile(r"//|/\./|/\.\./|%|#|/\.\.?$")
"""Exact paths that the definition of HTTPRoute takes, and what they must not contain.

An escape may stand for another text in a path, and not in an expression.
"""

Action = TypeVar("Action")


@dataclass(frozen=True, slots=True)
class Decision(Generic[Action]):
    """Requests of a match, and what happens to them; `match` has at most one method."""

    match: RequestMatch
    action: Action


@dataclass(frozen=True, slots=True)
class OrderError(Exception):
    """Matches that the Gateway API cannot keep in order; `reason` is for the user."""

    reason: str


def ordered(decisions: Sequence[Decision[Action]]) -> tuple[Decision[Action], ...]:
    """Return decisions that decide each request by the Gateway API as the first that fits in `decisions`.

    Raises OrderError if there are none, or more than GREATEST_NUMBER.
    """
    result: list[Decision[Action]] = []
    # From the last to the first: an earlier decision takes its requests from all later ones.
    for decision in reversed(decisions):
        result = [*_before(decision, result), decision, *result]
        if len(result) > GREATEST_NUMBER:
            raise OrderError(f"more than {GREATEST_NUMBER} matches are necessary to keep their order")
    return tuple(sorted(result, key=lambda item: specificity(item.match)))


def _before(decision: Decision[Action], later: list[Decision[Action]]) -> list[Decision[Action]]:
    """Return decisions for requests of `decision` that a later, more specific one would take."""
    result: dict[RequestMatch, Decision[Action]] = {}
    for other in later:
        if other.action != decision.action and specificity(other.match) < specificity(decision.match):
            common = both(decision.match, other.match)
            if common is not None:
                result.setdefault(common, Decision(common, decision.action))
    return list(result.values())


def in_gateway_form(match: RequestMatch) -> RequestMatch:
    """Return a match of SMI with exact values in place of expressions that only match one text."""
    path = match.path
    if isinstance(path, Regex):
        text = text_of(path.regex)
        if text is not None and _EXACT.fullmatch(text) and not _REFUSED.search(text):
            path = Exact(text)
    return replace(match, path=path, headers=tuple(map(_header, match.headers)))


def _header(header: FieldMatch) -> FieldMatch:
    text = text_of(header.value.regex) if isinstance(header.value, Regex) else None
    return replace(header, value=Exact(text)) if text else header


def both(one: RequestMatch, other: RequestMatch) -> RequestMatch | None:
    """Return the match of requests that fit both; None if there are none. Raises OrderError."""
    if one.methods and other.methods and one.methods != other.methods:
        return None
    headers: dict[str, FieldMatch] = {}
    for header in (*one.headers, *other.headers):
        known = headers.get(header.name, header)
        value = _common(known.value, header.value, f"header {header.name}")
        if value is None:
            return None
        headers[header.name] = FieldMatch(header.name, value)
    path = one.path or other.path
    if one.path is not None and other.path is not None:
        path = _common(_text(one.path), _text(other.path), "the path")
        if path is None:
            return None
    return RequestMatch(path, one.methods or other.methods, tuple(headers.values()))


def _text(path: Exact | Prefix | Regex | GrpcMethod) -> Exact | Regex:
    if not isinstance(path, Exact | Regex):
        raise TypeError(f"{path!r} is no path of SMI")
    return path


def _common(one: Exact | Regex, other: Exact | Regex, part: str) -> Exact | Regex | None:
    """Return what fits the texts that fit both; None if there are none. Raises OrderError."""
    match one, other:
        case (Exact(), Exact()) | (Regex(), Regex()) if one == other:
            return one
        case (Exact(), Exact()):
            return None
        case (Exact() as exact, Regex(regex)) | (Regex(regex), Exact() as exact):
            # The Gateway API and SMI match whole values alike, byte by byte.
            return exact if fits_in_full(regex, exact.text.encode()) else None
        case (Regex(".*"), _):
            return other
        case (_, Regex(".*")):
            return one
        case _:
            raise OrderError(
                f"a match of {part} with {_shown(one)} comes before a more specific one with "
                f"{_shown(other)}, and no match of the Gateway API requires both"
            )


def _shown(value: Exact | Regex) -> str:
    return repr(value.regex if isinstance(value, Regex) else value.text)
