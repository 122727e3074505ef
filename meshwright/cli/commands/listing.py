"""What the server has, listed: `meshwright proxies`, `sources`, `hosts`."""

from typing import Annotated

import typer

from meshwright.cli.errors import understood
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json, records, texts
from meshwright.cli.socket.client import api


def proxies(state: State, as_json: AsJson = False) -> None:
    """Show every proxy: connected, expected, disconnected or ended, in step, or why it is behind."""
    from meshwright.cli.printing.table import proxies_tables, show

    show(api(state, "/proxies"), proxies_tables, as_json=as_json)


def sources(state: State, as_json: AsJson = False) -> None:
    """Show every source: how fresh it is, what it holds, and what is held back."""
    from meshwright.cli.printing.table import show, sources_tables

    show(api(state, "/sources"), sources_tables, as_json=as_json)


def hosts(
    state: State,
    namespace: Annotated[str, typer.Option(help="The namespace whose short names are wanted.")],
    as_json: AsJson = False,
) -> None:
    """Print the lines of a hosts file that make the mesh's services resolve."""
    found = api(state, "/hosts", {"namespace": namespace})
    if as_json:
        print_json(found)
        return
    with understood():
        for line in records(found, "hosts"):
            print_lines(f"{line['address']} {' '.join(texts(line, 'names'))}")
