"""Filter for an application's page of metrics, before the page is joined with the agent's. Pure.

Prometheus refuses a whole page for one unreadable line, and keeps only one of two samples of a series. An
application's lines must therefore not make the sidecar's series unreadable, and not replace them. Every line
is parsed, and kept only if valid in Prometheus' text format (0.0.4).
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

import enum
import io
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MOST_LINES: Final = 200_000
"""Greatest number of lines; with about 80 bytes per line, twice as many as MOST_BYTES allows."""

_RESERVED_PREFIXES: Final = (b"meshwright_", b"envoy_")
"""Prefixes of the metrics of the agent and of Envoy."""
_RESERVED: Final = frozenset({
    b"up", b"scrape_body_size_bytes", b"scrape_duration_seconds", b"scrape_sample_limit",
    b"scrape_samples_post_metric_relabeling", b"scrape_samples_scraped", b"scrape_series_added",
    b"scrape_timeout_seconds",
})  # fmt: skip
"""Series that Prometheus itself adds for each target: https://prometheus.io/docs/concepts/jobs_instances/."""

# Possessive quantifiers, so that a line of megabytes takes linear time.
_NAME: Final = rb"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_QUOTED: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_META: Final = re.compile(
    rb"#[ \t]++(?P<what>TYPE|HELP)[ \t]++(?P<name>" + _NAME + rb")(?:[ \t]++(?P<said>.*+))?+"
)
_SAMPLE: Final = re.compile(
    rb"[ \t]*+(?P<name>" + _NAME + rb")[ \t]*+"
    rb"(?:\{(?P<labels>(?:[^\"}]++|" + _QUOTED + rb")*+)\})?+[ \t]*+"
    rb"(?P<value>[^ \t#]++)(?:[ \t]++(?P<at>[^ \t#]++))?+[ \t]*+(?:#.*+)?+"
)
_LABEL: Final = re.compile(
    rb"[ \t]*+(?P<name>[a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+(?P<value>"
    + _QUOTED
    + rb")[ \t]*+(?P<more>,?+)[ \t]*+"
)
_LONGEST_NUMBER: Final = 400
_VALUE: Final = re.compile(
    rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?|[-+]?(?:inf|infinity)|nan", re.IGNORECASE
)
_MILLISECONDS: Final = re.compile(rb"-?[0-9]{1,18}")
_SECONDS: Final = re.compile(rb"-?[0-9]{1,15}(?:\.[0-9]{0,9})?")
_TYPES: Final = frozenset({b"counter", b"gauge", b"histogram", b"summary", b"untyped"})
_OLDER: Final = {
    b"unknown": b"untyped", b"info": b"gauge", b"stateset": b"gauge", b"gaugehistogram": b"histogram"
}  # fmt: skip
"""Types of OpenMetrics, with their counterparts in the text format."""
_BEGUN: Final = b"_created"
_WITH_BEGIN: Final = frozenset({b"counter", b"histogram", b"summary"})


class DropReason(enum.StrEnum):
    """The reason for a dropped line of the application's page, and the label `reason` of a metric."""

    MALFORMED = "malformed"
    DUPLICATE = "duplicate"
    RESERVED = "reserved_name"


class TooManyLines(ValueError):
    """The page has more lines than MOST_LINES."""


@dataclass(frozen=True, slots=True)
class ApplicationPage:
    """Lines in the text format; the number of dropped lines by reason, and the name in the first of them."""

    content: bytes = b""
    dropped: Mapping[DropReason, int] = field(default_factory=dict)
    first: str = ""


def application_page(content: bytes) -> ApplicationPage:
    """Parse a page in the text format or OpenMetrics; raise TooManyLines.

    Parts without a counterpart in the text format are left out without being counted: comments, `# UNIT`,
    exemplars, and start times of counters (`_created`), which would double the number of series.
    """
    reader = _Reader(is_open=content.rstrip().endswith(b"# EOF"))
    for number, line in enumerate(io.BytesIO(content)):
        if number >= MOST_LINES:
            raise TooManyLines(f"it has more than {MOST_LINES} lines")
        reader.take(line.rstrip(b"\r\n"))
    return ApplicationPage(bytes(reader.kept), dict(reader.dropped), reader.first)


class _LineDropped(Exception):
    """A line of the application's page is dropped, for a counted reason."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason)
        self.reason = reason


class _Reader:
    """The filter for an application's page, which takes the lines one by one."""

    def __init__(self, *, is_open: bool) -> None:
        self.kept = bytearray()
        self.dropped: Counter[DropReason] = Counter()
        self.first = ""
        self._is_open = is_open
        self._typed: set[bytes] = set()
        self._helped: set[bytes] = set()
        self._begun: set[bytes] = set()
        self._sampled: set[bytes] = set()
        self._series: set[int] = set()

    def take(self, line: bytes) -> None:
        """Keep a line in the text format, or count the line as dropped."""
        try:
            if kept := self._line(line):
                self.kept += kept + b"\n"
        except _LineDropped as left:
            self.first = self.first or _shown(line)
            self.dropped[left.reason] += 1

    def _line(self, line: bytes) -> bytes:
        if not line.strip():
            return b""
        if b"\0" in line or b"\r" in line or not _is_text(line):
            raise _LineDropped(DropReason.MALFORMED)
        if line.lstrip().startswith(b"#"):
            match = _META.fullmatch(line)
            return b"" if match is None else self._meta(match)
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise _LineDropped(DropReason.MALFORMED)
        return self._sample(match)

    def _meta(self, match: re.Match[bytes]) -> bytes:
        name, value = match["name"], match["said"] or b""
        if name in self._begun:
            return b""
        _require_free(name)
        if match["what"] == b"HELP":
            if name in self._helped:
                raise _LineDropped(DropReason.DUPLICATE)
            self._helped.add(name)
            return b"# HELP " + name + b" " + value if value.strip() else b""
        return self._type(name, _OLDER.get(value.strip(), value.strip()))

    def _type(self, name: bytes, kind: bytes) -> bytes:
        if kind not in _TYPES:
            raise _LineDropped(DropReason.MALFORMED)
        if name in self._typed or name in self._sampled:  # parsers refuse a TYPE after samples
            raise _LineDropped(DropReason.DUPLICATE)
        self._typed.add(name)
        if kind in _WITH_BEGIN:
            self._begun |= {name + _BEGUN, name.removesuffix(b"_total") + _BEGUN}
        return b"# TYPE " + name + b" " + kind

    def _sample(self, match: re.Match[bytes]) -> bytes:
        name, labels = match["name"], match["labels"] or b""
        if name in self._begun:
            return b""
        _require_free(name)
        pairs, value, at = _pairs(labels), match["value"], self._moment(match["at"])
        if not _is_number(value):
            raise _LineDropped(DropReason.MALFORMED)
        series = hash((name, *sorted(pairs.items())))
        if series in self._series:
            raise _LineDropped(DropReason.DUPLICATE)
        self._series.add(series)
        self._sampled.add(name)
        return name + (b"{" + labels + b"}" if pairs else b"") + b" " + value + (at and b" " + at)

    def _moment(self, timestamp: bytes | None) -> bytes:
        """Return a timestamp in milliseconds (OpenMetrics has seconds); empty without one."""
        if timestamp is None:
            return b""
        if self._is_open and _SECONDS.fullmatch(timestamp):
            return str(round(float(timestamp) * 1000)).encode()
        if self._is_open or not _MILLISECONDS.fullmatch(timestamp):
            raise _LineDropped(DropReason.MALFORMED)
        return timestamp


def _require_free(name: bytes) -> None:
    if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
        raise _LineDropped(DropReason.RESERVED)


def _pairs(labels: bytes) -> dict[bytes, bytes]:
    """Parse the labels of a sample; names that begin with two underscores are reserved for Prometheus.

    Raises _LineDropped for malformed or reserved labels.
    """
    pairs: dict[bytes, bytes] = {}
    at, is_more = 0, True
    while at < len(labels):
        match = _LABEL.match(labels, at) if is_more else None
        if match is None:
            if labels[at:].strip(b" \t"):
                raise _LineDropped(DropReason.MALFORMED)
            break
        if match["name"] in pairs:
            raise _LineDropped(DropReason.MALFORMED)
        if match["name"].startswith(b"__"):
            raise _LineDropped(DropReason.RESERVED)
        pairs[match["name"]] = match["value"]
        at, is_more = match.end(), bool(match["more"])
    return pairs


def _is_number(value: bytes) -> bool:
    """Return whether Prometheus can parse a value; a number beyond a float's range is an error there."""
    if len(value) > _LONGEST_NUMBER or not _VALUE.fullmatch(value):
        return False
    return not math.isinf(float(value)) or b"inf" in value.lower()


def _shown(line: bytes) -> str:
    """Return the metric's name in a dropped line, for messages, without labels and values."""
    words = (
        line.split(None, 3)[:3] if line.lstrip().startswith(b"#") else line.strip().split(b"{")[0].split()[:1]
    )
    return ascii(b" ".join(words)[:80].decode("utf-8", "replace"))[1:-1]


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
