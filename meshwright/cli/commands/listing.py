"""Lists from the running server: `meshwright proxies`, `sources` and `hosts`."""

from typing import Annotated

import typer

from meshwright.cli.errors import understood
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json, required_records, texts
from meshwright.cli.socket.client import api


def proxies(state: State, as_json: AsJson = False) -> None:
    """List all proxies: connection, sync state, and the reason if one is behind.

    For example:

      meshwright proxies --state /var/lib/meshwright

    `meshwright proxy show NAME` shows one of them. Exit status: 0, or 2 if the
    server does not answer.
    """
    from meshwright.cli.printing.table import proxies_tables, show

    show(api(state, "/proxies"), proxies_tables, as_json=as_json)


def sources(state: State, as_json: AsJson = False) -> None:
    """List all sources of the mesh: age, number of objects, and withheld changes."""
    from meshwright.cli.printing.table import show, sources_tables

    show(api(state, "/sources"), sources_tables, as_json=as_json)


def hosts(
    state: State,
    namespace: Annotated[
        str, typer.Option(help="Namespace whose services are also listed by their short names.")
    ],
    as_json: AsJson = False,
) -> None:
    """Print the lines of a hosts file with the names of all services.

    Use the command on machines without the mesh's DNS. For example:

      meshwright hosts --namespace shop >> /etc/hosts

    Exit status: 0, or 2 if the server does not answer.
    """
    result = api(state, "/hosts", {"namespace": namespace})
    if as_json:
        print_json(result)
        return
    with understood():
        for line in required_records(result, "hosts"):
            print_lines(f"{line['address']} {' '.join(texts(line, 'names'))}")
