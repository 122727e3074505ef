"""`meshwright tap`: requests to a service, printed one by one when they are answered."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from meshwright.cli.durations import duration
from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, Replica, State
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.socket.client import follow

_Service = Annotated[str, typer.Argument(help="Called service, as NAMESPACE/SERVICE.", show_default=False)]
_Proxy = Annotated[
    str,
    typer.Option(
        help="Proxy whose requests are shown, named as for `meshwright proxy show`.", show_default="all"
    ),
]
_From = Annotated[
    list[str],
    typer.Option(
        "--from", help="Calling identity, as NAMESPACE/SERVICEACCOUNT. Repeat for more.", show_default="all"
    ),
]
_Method = Annotated[
    list[str], typer.Option("--method", help="HTTP method. Repeat for more.", show_default="all")
]
_Path = Annotated[str, typer.Option(help="First characters of the path.", show_default="all")]
_Status = Annotated[
    str, typer.Option(help="Status of the response, for example 404 or 5xx.", show_default="all")
]
_For = Annotated[str, typer.Option("--for", help="Time to watch, from 1s to 1h.")]
_Limit = Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of requests to show.")]


def tap(
    state: State,
    service: _Service = "",
    proxy: _Proxy = "",
    source: _From = [],  # noqa: B006 - typer's own, and never changed
    method: _Method = [],  # noqa: B006
    path: _Path = "",
    status: _Status = "",
    lasts: _For = "10m",
    limit: _Limit = 10_000,
    replica: Replica = "",
    as_json: AsJson = False,
) -> None:
    """Show the requests to a service or to one proxy, one by one, until Ctrl-C.

    For example, watch the failed requests to a service:

      meshwright tap shop/store --status 5xx --for 1m

    Exit status: 0 if the time or the number of requests is reached, 2 if the
    service is unknown or the server does not answer.
    """
    if not service and not proxy:
        raise CommandFailed(
            "a service or a proxy is required: give a service as NAMESPACE/SERVICE, or a proxy with --proxy"
        )
    seconds = int(duration("--for", lasts).total_seconds())
    answer = {"service": service, "proxy": proxy, "path": path, "status": status, "replica": replica}
    query = [(name, item) for name, item in answer.items() if item]
    query += [*(("from", item) for item in source), *(("method", item.upper()) for item in method)]
    query += [("seconds", str(seconds)), ("limit", str(limit))]
    ended = False
    # The server ends the stream after `seconds`. A quiet service sends no line before, so wait 60 s longer.
    for line in follow(state, "/tap", query, seconds + 60.0):
        _show(line, as_json=as_json)
        ended = "ended" in line
    if not ended:
        raise CommandFailed(
            "the server stopped, so that the requests are not shown any more: start the command again when "
            "it runs"
        )


def _show(line: Mapping[str, object], *, as_json: bool) -> None:
    """Print a request to standard output, or any other line of the stream to standard error."""
    from meshwright.cli.printing.requests import remark, request_line

    match line:
        case {"request": dict(request)}:
            print_lines(json.dumps(request) if as_json else request_line(request))
            # For pipes: a filter such as grep must see each request at once.
            sys.stdout.flush()
        case _:
            print_remarks(remark(line))
