"""Content negotiation: HTML or JSON, by the `Accept` header (RFC 9110, 12.5.1)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = rf'{_WORD}|"(?:[^"\\]|\\.)*"'
_ELEMENT: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_RANGE: Final = re.compile(rf"\s*({_WORD})(?:/({_WORD}))?\s*((?:;\s*(?:{_WORD}\s*=\s*(?:{_VALUE})\s*)?)*)")
_PARAMETER: Final = re.compile(rf"({_WORD})\s*=\s*({_VALUE})")
_WEIGHT: Final = re.compile(r"0?(?:\.\d*)?|1(?:\.0*)?")

HTML: Final = "text/html"
JSON: Final = "application/json"
_ENCODED: Final = {"charset": "utf-8"}
"""Parameters of the media types sent by the server."""


@dataclass(frozen=True, slots=True)
class _Range:
    """A media range of an `Accept` header with the weight; `*` matches any type."""

    kind: str
    subtype: str
    parameters: Mapping[str, str]
    weight: float

    def specificity(self, media_type: str) -> int | None:
        """Return the specificity of the range for a type (12.5.1); None if the type does not match."""
        kind, _, subtype = media_type.partition("/")
        if self.parameters.items() - _ENCODED.items():
            return None
        if (self.kind, self.subtype) == (kind, subtype):
            return 2 + len(self.parameters)
        if self.subtype != "*" or self.kind not in ("*", kind):
            return None
        return 1 if self.kind == kind else 0


def prefers_html(request: web.Request) -> bool:
    """Return True if the client prefers a page to JSON.

    With equal weights, the more specific range wins: HTML for `text/html, */*`. Otherwise the answer is
    JSON. Invalid elements are ignored. A client that accepts neither gets JSON, which 12.5.1 allows.
    """
    ranges = list(_ranges(request.headers.getall("Accept", ())))
    # (0.0, -1) is the result for a type that the client does not accept.
    return _wanted(ranges, HTML) > max(_wanted(ranges, JSON), (0.0, -1))


def _wanted(ranges: Iterable[_Range], media_type: str) -> tuple[float, int]:
    """Return weight and specificity of the most specific range of the `Accept` header for a media type."""
    result = (
        (closely, item.weight) for item in ranges if (closely := item.specificity(media_type)) is not None
    )
    closely, weight = max(result, default=(-1, 0.0))
    return weight, closely if weight else -1


def _ranges(lines: Iterable[str]) -> Iterator[_Range]:
    """Yield the ranges of all header lines, which form one list (5.3). Invalid elements are ignored."""
    for element in _ELEMENT.findall(",".join(lines)):
        match = _RANGE.fullmatch(element)
        if match is None or (match[2] is None and match[1] != "*"):  # Java's URLConnection sends a lone `*`
            continue
        given = {name.lower(): _plain(value).lower() for name, value in _PARAMETER.findall(match[3])}
        weight = given.pop("q", "1")
        if _WEIGHT.fullmatch(weight) and weight not in ("", "."):
            yield _Range(match[1].lower(), (match[2] or "*").lower(), given, float(weight))


def _plain(value: str) -> str:
    """Return the text of an unquoted or quoted parameter value in an `Accept` header (RFC 9110, 5.6.4)."""
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
