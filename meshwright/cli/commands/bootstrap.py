"""`meshwright bootstrap`: an Envoy bootstrap from the credential files of a proxy."""

from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, Domain, trust_domain_of
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text


def bootstrap(
    credentials: Annotated[
        Path, typer.Option(help="Directory with the proxy's credentials: proxy.pem, proxy.key, ca.pem.")
    ],
    ads: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT,...",
            help="Address of the control plane's ADS server; several, separated by commas, if several "
            "servers serve the mesh. Envoy begins with a random one.",
        ),
    ],
    admin: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|PATH",
            help="Address of Envoy's admin interface: the path of a Unix socket, which only Envoy's user "
            "can open, or a TCP address, which every user of the machine can use.",
            show_default="no admin interface",
        ),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="Variant of xDS: delta (incremental) or sotw (state of the world).")
    ] = "delta",
    output: Annotated[
        Path | None, typer.Option(help="File to write.", show_default="standard output")
    ] = None,
    trust_domain: Domain = None,
    as_json: AsJson = False,
) -> None:
    r"""Write the Envoy bootstrap of one sidecar, if you run Envoy without the agent.

    The name of the proxy is read from its certificate. For example:

      meshwright bootstrap --credentials /etc/meshwright/credentials \
          --ads control.example:15128 --output envoy.json

    The bootstrap is always JSON. With --output and --json, the command prints the
    name of the file as JSON.
    """
    from meshwright.cli.offline.bootstrap import text

    made = text(credentials, ads, admin, protocol, trust_domain_of(trust_domain))
    if output is None:
        print_text(made)
        return
    from meshwright.cli.printing.files import write

    try:
        write(output, made.encode(), 0o644)
    except OSError as error:
        raise CommandFailed(
            f"cannot write the bootstrap to {output}: {error.strerror}; choose another file with --output"
        ) from error
    if as_json:
        print_json({"written": str(output)})
