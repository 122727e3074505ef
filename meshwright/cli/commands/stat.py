"""`meshwright stat` and `meshwright top`: request statistics of at most the last hour."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from meshwright.cli.durations import duration
from meshwright.cli.options import AsJson, Replica, State
from meshwright.cli.printing.lines import print_remarks
from meshwright.cli.printing.responses import (
    Found,
    missing_replicas,
    of_replica,
    print_json,
    required_records,
)
from meshwright.cli.socket.client import api
from meshwright.traffic.statistics import RowKind

_EACH_SECONDS: Final = 2.0


_What = Annotated[
    RowKind,
    typer.Argument(
        help="Objects to show, one per row. routes: only for services with several routes, from a "
        "RoutePolicy or a TrafficSplit with matches, or with routes of the Gateway API."
    ),
]
_Window = Annotated[
    str,
    typer.Option(
        help="Time to average over, from 10s to 1h.",
        show_default="1m, or longer if proxies report less often",
    ),
]
_Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", help="Namespace of the caller or of the called service.", show_default="all"
    ),
]
_From = Annotated[
    str, typer.Option("--from", help="Calling service, as NAMESPACE/SERVICE.", show_default="all")
]
_To = Annotated[str, typer.Option("--to", help="Called service, as NAMESPACE/SERVICE.", show_default="all")]


def stat(
    state: State,
    of: _What = RowKind.SERVICES,
    window: _Window = "",
    namespace: _Namespace = "",
    source: _From = "",
    destination: _To = "",
    replica: Replica = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh the output every 2 seconds until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show request rate, success rate, latency and connections.

    For example, show all callers of a service, and refresh the output:

      meshwright stat edges --to shop/store --watch

    Exit status: 0, or 2 if the server does not answer.
    """
    query = _query(window, namespace, source, destination, replica)
    if watch:
        _watched(state, of, query, as_json=as_json, busiest=False)
        return
    result = _request_rows(state, of, query)
    if as_json:
        print_json(result)
        return
    _shown(of, result, destination)


def top(
    state: State,
    of: _What = RowKind.EDGES,
    window: _Window = "",
    namespace: _Namespace = "",
    source: _From = "",
    destination: _To = "",
    replica: Replica = "",
    as_json: AsJson = False,
) -> None:
    """Show the busiest services, proxies, edges, routes or backends.

    The command refreshes its output every 2 seconds until Ctrl-C. If the output
    is not a terminal, the command prints once.
    """
    query = _query(window, namespace, source, destination, replica)
    # A table cannot be refreshed in place in a file or a pipe.
    if as_json or not sys.stdout.isatty():
        result = _request_rows(state, of, query)
        result = {**result, "rows": _busiest(required_records(result, "rows"))}
        if as_json:
            print_json(result)
        else:
            _shown(of, result, destination)
        return
    _watched(state, of, query, as_json=False, busiest=True)


def _query(window: str, namespace: str, source: str, destination: str, replica: str) -> Mapping[str, str]:
    seconds = f"{duration('--window', window).total_seconds():g}" if window else ""
    query = {"window": seconds, "namespace": namespace, "from": source, "to": destination}
    return {**{name: item for name, item in query.items() if item}, **of_replica(replica)}


def _request_rows(state: Path, row_kind: RowKind, query: Mapping[str, str]) -> Found:
    return api(state, f"/stat/{row_kind.value}", query)


def _shown(row_kind: RowKind, result: Found, destination: str = "") -> None:
    from meshwright.cli.printing.statistics import figures_tables, hint_without_calls, remark
    from meshwright.cli.printing.table import console

    for table in figures_tables(row_kind.value, result):
        console().print(table)
    for words in (hint_without_calls(row_kind.value, destination, result), remark(result)):
        if words:
            print_remarks(words)
    print_remarks(*missing_replicas(result))


def _watched(
    state: Path, row_kind: RowKind, query: Mapping[str, str], *, as_json: bool, busiest: bool
) -> None:
    """Refresh the table in place until interrupted; with `as_json`, print one line for each refresh."""
    from rich.live import Live

    from meshwright.cli.printing.statistics import figures_tables
    from meshwright.cli.printing.table import console

    if as_json:
        while True:
            print(json.dumps(_request_rows(state, row_kind, query)), flush=True)
            time.sleep(_EACH_SECONDS)
    with Live(console=console(), auto_refresh=False) as live:
        while True:
            result = _request_rows(state, row_kind, query)
            rows = required_records(result, "rows")
            live.update(
                figures_tables(row_kind.value, result, _busiest(rows) if busiest else rows)[0], refresh=True
            )
            time.sleep(_EACH_SECONDS)


def _busiest(rows: list[Found]) -> list[Found]:
    """Return rows with the most requests first, then with the most connections."""

    def key(row: Found) -> tuple[float, float]:
        counts = (row.get("per_second"), row.get("connections"))
        rate, opened = (count if isinstance(count, int | float) else 0 for count in counts)
        return -rate, -opened

    return sorted(rows, key=key)
