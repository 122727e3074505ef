"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandFailed
from mesh.host_port import HostPort

State = Annotated[
    Path, typer.Option(envvar="MESHWRIGHT_STATE", help="State directory of the server.", show_default=False)
]
Trust = Annotated[
    str, typer.Option(envvar="MESHWRIGHT_TRUST_DOMAIN", help="Of the state directory, if no server runs.")
]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared-state", envvar="MESHWRIGHT_SHARED_STATE", help="Although others can read the directory."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def host_port(flag: str, text: str, example: int = 9092) -> HostPort:
    """Read `HOST:PORT`; raise CommandFailed, which names the flag."""
    try:
        return HostPort.parse(text, example)
    except ValueError as error:
        raise CommandFailed(f"{flag} is {text!r}: {error}") from error
