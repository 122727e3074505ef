"""Lists from the running server: `meshwright proxies`, `sources` and `hosts`."""

from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed, NegativeAnswer, UnexpectedResponse, understood
from meshwright.cli.options import AsJson, Replica, State
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import Found, of_replica, print_json, records, required_records, texts
from meshwright.cli.socket.client import api


def proxies(state: State, replica: Replica = "", as_json: AsJson = False) -> None:
    """List all proxies: connection, sync state, and the reason if one is behind.

    For example:

      meshwright proxies --state /var/lib/meshwright

    `meshwright proxy show NAME` shows one of them. Exit status: 0, or 2 if the
    server does not answer.
    """
    from meshwright.cli.printing.table import proxies_tables, show

    show(api(state, "/proxies", of_replica(replica)), proxies_tables, as_json=as_json)


def replicas(state: State, as_json: AsJson = False) -> None:
    """List the servers of the mesh, if several share their state.

    The command asks one server, by its state directory, and this server asks the
    others. For example:

      meshwright replicas --state /var/lib/meshwright

    Exit status: 0 if all servers answer, 1 if one is missing, 2 if the server of
    the state directory does not answer or is the only one of its mesh.
    """
    from meshwright.cli.printing.table import replicas_tables, show

    try:
        result = api(state, "/replicas")
    except UnexpectedResponse:
        require_shared_store(api(state, "/config"), state)
        raise
    show(result, replicas_tables, as_json=as_json)
    if missing := records(result, "partial"):
        raise NegativeAnswer(f"{len(missing)} of {len(records(result, 'replicas'))} servers did not answer")


def sources(state: State, replica: Replica = "", as_json: AsJson = False) -> None:
    """List all sources of the mesh: age, number of objects, and withheld changes."""
    from meshwright.cli.printing.table import show, sources_tables

    show(api(state, "/sources", of_replica(replica)), sources_tables, as_json=as_json)


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


def require_shared_store(config: Found, state: Path) -> None:
    """Raise CommandFailed for a server that does not share its state with others."""
    settings = config.get("settings")
    store = settings.get("store", "directory") if isinstance(settings, dict) else "directory"
    if store == "directory":
        raise CommandFailed(
            f"the server of {state} is the only one of its mesh: it keeps its state in this directory "
            "(setting store)"
        )
