"""`meshwright tap`: requests to a service as they are answered, one by one."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from meshwright.cli.durations import duration
from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.socket.client import follow

_Service = Annotated[str, typer.Argument(help="Whose requests: NAMESPACE/SERVICE.", show_default=False)]
_Proxy = Annotated[str, typer.Option(help="Only what this proxy answers: as `meshwright proxy show` has it.")]
_From = Annotated[
    list[str], typer.Option("--from", help="Only of this NAMESPACE/SERVICEACCOUNT; may be repeated.")
]
_Method = Annotated[list[str], typer.Option("--method", help="Only this method; may be repeated.")]
_Path = Annotated[str, typer.Option(help="Only paths that begin so.")]
_Status = Annotated[str, typer.Option(help="Only what is answered so: 5xx, 404.")]
_For = Annotated[str, typer.Option("--for", help="For so long: 1s to 1h.")]
_Limit = Annotated[int, typer.Option(min=1, max=100_000, help="So many requests at most.")]


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
    as_json: AsJson = False,
) -> None:
    """Show requests to a service, or to one proxy, as they are answered or denied, until Ctrl-C."""
    if not service and not proxy:
        raise CommandFailed("whose requests? name a service, NAMESPACE/SERVICE, or --proxy")
    seconds = int(duration("--for", lasts).total_seconds())
    said = {"service": service, "proxy": proxy, "path": path, "status": status}
    query = [(name, each) for name, each in said.items() if each]
    query += [*(("from", each) for each in source), *(("method", each.upper()) for each in method)]
    query += [("seconds", str(seconds)), ("limit", str(limit))]
    ended = False
    for line in follow(state, "/tap", query, seconds + 60.0):
        _show(line, as_json=as_json)
        ended = "ended" in line
    if not ended:
        raise CommandFailed("the server is gone; what was watched is watched no longer")


def _show(line: Mapping[str, object], *, as_json: bool) -> None:
    """Print a request to standard output, and on standard error what else is said."""
    from meshwright.cli.printing.requests import remark, request_line

    match line:
        case {"request": dict(request)}:
            print_lines(json.dumps(request) if as_json else request_line(request))
            sys.stdout.flush()
        case _:
            say(remark(line))
