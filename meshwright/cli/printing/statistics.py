"""Statistics of calls, as tables for a terminal."""

from collections.abc import Mapping

from rich.text import Text

from meshwright.cli.printing.responses import Found, required_records
from meshwright.cli.printing.table import Columns, columns, styled

_WELL = 0.99
_BADLY = 0.9


def figures_tables(row_kind: str, result: Found, rows: list[Found] | None = None) -> tuple[Columns]:
    """Return the table of request statistics from `/api/v1/stat/OF`; with `rows`, of these rows only."""
    first = _FIRST[row_kind]
    table = columns(*first, "SUCCESS", "RPS", "P50", "P95", "P99", "FAILED", "CONNECTIONS")
    for row in required_records(result, "rows") if rows is None else rows:
        table.add_row(
            *(_cell(row, name) for name in first),
            _success(row.get("success")),
            _rate(row),
            *(_time(row.get(f"p{part}_ms")) for part in (50, 95, 99)),
            str(row.get("failures", 0)),
            str(row.get("connections", 0)),
        )
    return (table,)


def hint_without_calls(row_kind: str, destination: str, result: Found) -> str:
    """Return a sentence, with another command to try, if no calls to a service were counted; else empty."""
    if result.get("rows") or not destination:
        return ""
    words = f"no calls to {destination} were counted"
    if row_kind in ("edges", "routes"):
        behind = "calls that a TrafficSplit or a route leads to other Services"
        return f"{words}; {behind} are in `stat backends --to {destination}`"
    return words


def remark(result: Found) -> str:
    """Return a sentence if some connected proxies have not reported lately, else an empty string."""
    reporting = result.get("reporting")
    response = reporting if isinstance(reporting, Mapping) else {}
    answer, here = response.get("proxies", 0), response.get("connected", 0)
    if not isinstance(answer, int) or not isinstance(here, int) or answer >= here:
        return ""
    return f"only {answer} of {here} connected proxies have reported statistics recently"


_FIRST = {
    "services": ("SERVICE", "PROTOCOL"),
    "proxies": ("PROXY", "DIRECTION", "PROTOCOL"),
    "edges": ("SOURCE", "DESTINATION", "PROTOCOL"),
    "routes": ("ROUTE", "DESTINATION", "SOURCE"),
    "backends": ("SOURCE", "BACKEND", "RETRIES"),
}


def _cell(row: Mapping[str, object], name: str) -> str:
    key = {"service": "destination"}.get(name.lower(), name.lower())
    value = row.get(key)
    return end(value) if isinstance(value, Mapping) else "-" if value is None else str(value)


def end(value: Mapping[str, object]) -> str:
    """Return a service with its port, for example `shop/store:80`."""
    name = f"{value['namespace']}/{value['service']}" if value.get("namespace") else str(value["service"])
    port = value.get("port")
    return f"{name}:{port}" if port else name


def _success(part: object) -> Text:
    if not isinstance(part, int | float):
        return styled("-")
    style = "green" if part >= _WELL else "yellow" if part >= _BADLY else "red"
    return styled(f"{part:.2%}", style)


def _rate(row: Mapping[str, object]) -> str:
    rate = row.get("per_second")
    # Envoy counts requests of HTTP only; for other protocols there is no rate.
    return f"{rate:.1f}" if isinstance(rate, int | float) and row.get("protocol") == "http" else "-"


def _time(milliseconds: object) -> str:
    return f"{milliseconds:g}ms" if isinstance(milliseconds, int | float) else "-"
