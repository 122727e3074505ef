"""`meshwright bootstrap`: an Envoy bootstrap from the files that were written for a proxy."""

from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, Domain, trust_domain_of
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text


def bootstrap(
    credentials: Annotated[Path, typer.Option(help="Directory with proxy.pem, proxy.key and ca.pem.")],
    ads: Annotated[str, typer.Option(metavar="HOST:PORT", help="The control plane.")],
    admin: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|PATH",
            help="Envoy's admin, without which there is none: a socket for Envoy's user alone, "
            "or a port for every user of the machine.",
        ),
    ] = None,
    protocol: Annotated[str, typer.Option(help="delta or sotw.")] = "delta",
    output: Annotated[Path | None, typer.Option(help="File to write; standard output without.")] = None,
    trust_domain: Domain = None,
    as_json: AsJson = False,
) -> None:
    """Write an Envoy bootstrap for one sidecar; its name is read from its certificate.

    A bootstrap is JSON in any case; with --json and --output, what is printed is where it was written.
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
        raise CommandFailed(f"cannot write {output}: {error.strerror}") from error
    if as_json:
        print_json({"written": str(output)})
