"""Layout of the page Traffic: rates, success and response times as reported by proxies."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, part, records
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import Markup, joined, name, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted, worst
from meshwright.admin.html.values import NONE
from meshwright.admin.jsonable import Document
from meshwright.traffic.statistics import RowKind

WELL: Final = 0.99
BADLY: Final = 0.9
"""Success rates: from WELL a row is good, from BADLY a warning, below BADLY a failure."""


def tone(row: Document) -> Tone:
    """Return the tone of a traffic statistic by success rate; PLAIN without requests."""
    success = row.get("success")
    if not isinstance(success, int | float):
        return Tone.PLAIN
    return Tone.GOOD if success >= WELL else Tone.WARNING if success >= BADLY else Tone.BAD


def of_traffic(result: Document) -> Verdict:
    """Return the number of good rows, the name of the worst row, and the number of reporting proxies."""
    rows, message = records(result, "rows"), _incomplete_note(result)
    asked = [row for row in rows if tone(row) is not Tone.PLAIN]
    failing = [item for item in asked if tone(item) is not Tone.GOOD]
    over = f"in the last {counted(round(_number(result.get('window_seconds'))), 'second')}"
    if not asked:
        return Verdict(Tone.PLAIN, f"No request was counted {over}{message}.")
    if not failing:
        return Verdict(
            Tone.GOOD,
            f"{counted(len(asked), 'row')} with requests {over}; all at least {WELL:.0%} success{message}.",
        )
    first = min(failing, key=lambda item: _number(item.get("success")))
    words = f"{_whole_name(first)} succeeds in {_number(first.get('success')):.2%}"
    among = f"Success below {WELL:.0%} in {len(failing)} of {counted(len(asked), 'row')} with requests {over}"
    return Verdict(worst(map(tone, failing)), f"{among}: {words}{message}.")


def _incomplete_note(result: Document) -> str:
    reporting = part(result, "reporting")
    # Low counts may only mean that some proxies have not reported yet.
    answer, connected = reporting.get("proxies"), reporting.get("connected")
    if not isinstance(answer, int) or not isinstance(connected, int) or answer >= connected:
        return ""
    proxies = counted(connected, "connected proxy", "connected proxies")
    return f"; only {answer} of {proxies} have reported statistics recently"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _end(row: Document, field: str) -> str:
    end = part(row, field)
    if not end:
        return ""
    port = f":{end['port']}" if end.get("port") else ""
    return f"{field_text(end, 'namespace')}/{field_text(end, 'service')}{port}".removeprefix("/")


def _whole_name(row: Document) -> str:
    """Return the subject of a traffic statistic: the proxy, the route, or the caller and called service."""
    ends = [_end(row, "source"), _end(row, "destination"), _end(row, "backend")]
    return field_text(row, "proxy") or field_text(row, "route") or " to ".join(filter(None, ends))


def _service(row: Document, field: str) -> Markup:
    shown = _end(row, field)
    if "/" not in shown:
        return name(shown) if shown else NONE
    return links.service(shown.partition(":")[0], shown)


def _success(row: Document) -> Markup:
    success = row.get("success")
    return badge(f"{success:.2%}", tone(row)) if isinstance(success, int | float) else NONE


def _times(row: Document) -> Markup:
    result = [row.get(f"p{part_}_ms") for part_ in (50, 95, 99)]
    if not all(isinstance(item, int | float) for item in result):
        return NONE
    return joined([text(f"{item:g}") for item in result], " / ")


def _proxy(row: Document) -> Markup:
    return links.proxy(field_text(row, "proxy"))


_FIGURES: Final = (
    Column("Success", _success, ("success",)),
    Column("Per second", lambda row: text(row.get("per_second")), ("per_second",)),
    Column("P50/95/99 ms", _times, ("p50_ms", "p95_ms", "p99_ms")),
    Column("Failed", lambda row: text(row.get("failures")), ("failures",)),
    Column("Connections", lambda row: text(row.get("connections")), ("connections",)),
)
_NAMES: Final = {
    "source": Column("From", lambda row: _service(row, "source"), ("source",)),
    "destination": Column("To", lambda row: _service(row, "destination"), ("destination",)),
    "backend": Column("Backend", lambda row: _service(row, "backend"), ("backend",)),
    "route": Column("Route", lambda row: name(field_text(row, "route")), ("route",)),
    "proxy": Column("Proxy", _proxy, ("proxy",)),
}
_PROTOCOL: Final = Column("Protocol", lambda row: text(field_text(row, "protocol")), ("protocol",))


def _traffic(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    rows = sorted(records(result, "rows"), key=lambda row: list(Tone).index(tone(row)))
    first = [column for field, column in _NAMES.items() if any(row.get(field) for row in rows)]
    empty = "No call was reported. Agents report calls if their `--renewal` names this server."
    shown = [
        {item: value for item, value in row.items() if value not in (None, 0) or item in _SAID}
        for row in rows
    ]
    yield table(shown, (*first, _PROTOCOL, *_FIGURES), empty)


_SAID: Final = ("failures", "connections", "per_second")

TRAFFIC: Final = PageLook(
    "Traffic",
    of_traffic,
    _traffic,
    (
        Form(
            (
                Field("of", "Rows", choices=tuple(RowKind), required=True),
                Field("window", "Over the last seconds, 10 to 3600", "60"),
                Field("namespace", "In the namespace", "shop"),
                Field("from", "From: namespace/service", "shop/buyer"),
                Field("to", "To: namespace/service", "shop/store"),
                Field("service", "From or to: namespace/service", "shop/store"),
            ),
            "Show",
        ),
    ),
    "Calls between services: rate, success and latency, as proxies have counted them.",
    frozenset({"from", "to", "namespace"}),
)
