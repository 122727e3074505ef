"""Tables for a terminal: proxies, join tokens and sources."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from meshwright.cli.errors import understood
from meshwright.cli.printing.lines import print_remarks
from meshwright.cli.printing.responses import (
    Found,
    missing_replicas,
    print_json,
    records,
    required_records,
    texts,
)
from meshwright.mesh.terminal import screened_stream as screened
from meshwright.mesh.terminal.printable import on_one_line

_STATES: Final = {"connected": "green", "expected": "yellow", "disconnected": "red", "dead": "red"}
_REPLICA_STATES: Final = {"ready": "green", "unknown": "red"}
_WIDE: Final = 240
_SYNCS: Final = {"synced": "green", "pending": "yellow", "nacked": "red"}


def console() -> Console:
    """Return the terminal, or a console with wide lines if the output goes to a file or a pipe."""
    file = screened.styled(sys.stdout)
    result = Console(file=file)
    return result if result.is_terminal else Console(file=file, width=_WIDE)


def show(result: object, tables: Callable[[Found], tuple["Columns", ...]], *, as_json: bool) -> None:
    """Print an answer as tables for people, or as JSON."""
    if as_json or not isinstance(result, Mapping):
        print_json(result)
        return
    with understood():
        for table in tables(result):
            console().print(table)
        print_remarks(*missing_replicas(result))


def proxies_tables(result: Found) -> tuple["Columns"]:
    """Return the table of `/api/v1/proxies`: the state of each proxy, the duration, and the cause.

    The columns POD, NODE and REPLICA appear only if at least one proxy has a value.
    """
    listed = required_records(result, "proxies")
    places = [name for name in ("pod", "node", "replica") if any(proxy.get(name) for proxy in listed)]
    table = columns("PROXY", "SERVICE", *map(str.upper, places), "STATE", "FOR", "SYNC", "ADDRESS", "BEHIND")
    for proxy in listed:
        state = "dead" if proxy.get("dead") else str(proxy.get("state", ""))
        table.add_row(
            str(proxy.get("uuid", "")),
            f"{proxy.get('namespace', '')}/{proxy.get('service', '')}",
            *(str(proxy.get(name) or "-") for name in places),
            styled(state, _STATES.get(state, "")),
            str(proxy.get("age", "")),
            _sync({} if proxy.get("held") else proxy.get("sync")),
            str(proxy.get("address") or ""),
            styled(str(proxy.get("why") or ""), "yellow"),
        )
    return (table,)


def _sync(sync: object) -> Text:
    """Return the synchronisation state of a proxy: one word if all types agree, else each unsynced type."""
    if not isinstance(sync, Mapping) or not sync:
        return styled("-")
    states = {str(state) for state in sync.values()}
    if len(states) == 1:
        (state,) = states
        return styled(state, _SYNCS.get(state, ""))
    parts = [
        styled(f"{type_name} {state}", _SYNCS.get(str(state), ""))
        for type_name, state in sync.items()
        if state != "synced"
    ]
    return Text(", ").join(parts)


def replicas_tables(result: Found) -> tuple["Columns"]:
    """Return the table of `/api/v1/replicas`: state, load and inputs of each server."""
    made = columns(
        "REPLICA",
        "STATE",
        "LEADS",
        "VERSION",
        "SINCE",
        "PROXIES",
        "FAIR SHARE",
        "STORE",
        "INPUTS",
        "OTHER SETTINGS",
    )
    for record in required_records(result, "replicas"):
        state = str(record.get("state", ""))
        share, age = record.get("fair_share"), record.get("store_age_seconds")
        made.add_row(
            str(record.get("replica", "")),
            styled(state, _REPLICA_STATES.get(state, "yellow")),
            "leads" if record.get("leads") else "-",
            str(record.get("version") or "-"),
            str(record.get("since") or "-"),
            str(record.get("proxies", "")),
            "-" if share is None else str(share),
            "-" if age is None else f"{age} s ago",
            str(record.get("inputs") or "-")[:16],
            styled(", ".join(texts(record, "differing_settings")) or "-", "yellow"),
        )
    return (made,)


def tokens_tables(result: Found) -> tuple["Columns"]:
    """Return the table of join tokens."""
    table = columns("TOKEN", "SERVICE", "PROXY", "STATE", "USED", "VALID UNTIL", "MADE BY")
    for record in required_records(result, "join_tokens"):
        table.add_row(
            str(record["id"]),
            f"{record['namespace']}/{record['service']}",
            str(record.get("uuid") or "-"),
            str(record["state"]),
            f"{record['used']} of {record['uses']}",
            str(record["expires_at"]),
            str(record.get("made_by") or "-"),
        )
    return (table,)


def sources_tables(result: Found) -> tuple["Columns", ...]:
    """Return the tables of `/api/v1/sources`: the age of each source, and numbers of objects.

    Sources with separate watches for their kinds have one more table, with a row for each watch.
    """
    made = columns("SOURCE", "READ", "CHANGED", "GOOD", "STALE", "REFUSED", "HELD BACK", "ERROR")
    for record in required_records(result, "sources"):
        objects = record.get("objects")
        counts = objects if isinstance(objects, Mapping) else {}
        made.add_row(
            str(record.get("name", "")),
            _ago(record.get("age"), "never" if record.get("error") or any(counts.values()) else "-"),
            _ago(record.get("event_age"), "not yet"),
            *(str(counts.get(state, "")) for state in ("good", "stale", "refused")),
            styled(", ".join(texts(record, "held")), "yellow"),
            styled(_since(record.get("error"), record.get("error_since")), "red"),
        )
    watches = [watch for record in records(result, "sources") for watch in records(record, "watches")]
    return (made, _watches(watches)) if watches else (made,)


def _watches(watches: Iterable[Found]) -> "Columns":
    made = columns("WATCHED", "HEARD", "CHANGED", "LISTED", "EVENTS", "LISTED AGAIN", "ERRORS", "ERROR")
    for watch in watches:
        errors = watch.get("errors")
        counts = errors if isinstance(errors, Mapping) else {}
        made.add_row(
            f"{watch.get('name', '')}{f' in {where}' if (where := watch.get('namespace')) else ''}",
            _ago(watch.get("heard_age"), "never"),
            _ago(watch.get("event_age"), "not yet"),
            _ago(watch.get("list_age"), "never"),
            *(str(watch.get(count, "")) for count in ("events", "relists")),
            ", ".join(f"{count} {reason}" for reason, count in counts.items()),
            styled(_since(watch.get("error"), watch.get("error_since")), "red"),
        )
    return made


def _ago(age: object, otherwise: str) -> str:
    return f"{age} ago" if age else otherwise


def _since(error: object, moment: object) -> str:
    return f"{error} (since {moment})" if error else ""


class Columns(Table):
    """A table whose cells are plain text: markup, control characters and line feeds are escaped.

    Use `styled` for a cell with a style, and `with_step` for a cell of two lines.
    """

    def add_row(self, *cells: str | Text) -> None:  # type: ignore[override]  # no other kind of cell is used
        """Add a row."""
        super().add_row(*(cell if isinstance(cell, Text) else styled(cell) for cell in cells))


def styled(text: str, style: str = "") -> Text:
    """Return a cell with a style."""
    return Text(on_one_line(text), style=style)


def with_step(text: str, do: str) -> Text:
    """Return a cell with a text and, on a second line, the next step, if there is one."""
    return styled(text) if not do else Text("\n-> ").join((styled(text), styled(do)))


def columns(*names: str) -> Columns:
    """Return an empty table with these columns; long cells are folded."""
    table = Columns(box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    return table
