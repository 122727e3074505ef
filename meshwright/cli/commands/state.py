"""`meshwright state`: backup, restore and moves of a mesh's state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.commands.serve import named
from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json

state = typer.Typer(
    help="Back up, restore and move the state of a mesh: CA, ledger, service certificates, join tokens.",
    no_args_is_help=True,
)

Directory = Annotated[
    Path | None,
    typer.Option(
        "--state",
        envvar="MESHWRIGHT_STATE",
        help="State directory of the server, for example /var/lib/meshwright.",
        show_default="from the file of --config",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(envvar="MESHWRIGHT_CONFIG", help="YAML file with the server's settings."),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any setting of the server, for example store=kubernetes. Repeat for more.",
    ),
]
Kubernetes = Annotated[
    bool | None,
    typer.Option("--kubernetes", help="The server reads its mesh from a Kubernetes cluster, as in serve."),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File with the passphrase of the export, in one line.", show_default="ask for it"
    ),
]


@state.command("export")
def export(
    file: Annotated[
        Path,
        typer.Argument(help="New file for the export, written with mode 0600; or - for standard output."),
    ],
    passphrase_file: PassphraseFile = None,
    directory: Directory = None,
    config: Config = None,
    kubernetes: Kubernetes = None,
    setting: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Write the state of the mesh to a new file, encrypted with a passphrase.

    Give the settings of the server. With the setting store, the state is read
    from the store. Otherwise the running server is asked, or the state directory
    is read if no server runs. For example:

      meshwright state export mesh.state --state /var/lib/meshwright

    Keep the passphrase apart from the file: whoever has both has the CA.
    """
    from meshwright.cli.identities.mesh_state import exported

    is_printed = str(file) == "-"
    if is_printed and as_json:
        raise CommandFailed("--json and the file - exclude each other: both are printed on standard output")
    flags = _flags(directory, config, kubernetes, setting)
    header = exported(flags, None if is_printed else file, passphrase_file)
    if is_printed:
        print_remarks(*_lines(header.root, header.counts))
        return
    if as_json:
        print_json({**header.document(), "file": str(file)})
        return
    print_lines(*_lines(header.root, header.counts), f"written to {file}")


@state.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="File that `meshwright state export` has written.")],
    passphrase_file: PassphraseFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file and the place, show the content, and stop.")
    ] = False,
    directory: Directory = None,
    config: Config = None,
    kubernetes: Kubernetes = None,
    setting: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Restore the state of a mesh from a file, into an empty place.

    Give the settings of the server that will use the state. The place is the
    state directory, or the store with the setting store. For example:

      meshwright state import mesh.state --state /var/lib/meshwright

    A place that has a mesh, or other files, is refused. An interrupted import can
    be repeated.
    """
    from meshwright.cli.identities.mesh_state import imported

    flags = _flags(directory, config, kubernetes, setting)
    header, place = imported(flags, file, passphrase_file, dry_run=dry_run)
    if as_json:
        print_json({**header.document(), "file": str(file), "place": place, "imported": not dry_run})
        return
    when = f"exported at {header.exported_at.isoformat()} by version {header.version}"
    done = f"{place} is empty: the file can be imported" if dry_run else f"imported into {place}"
    print_lines(*_lines(header.root, header.counts), when, done)


@state.command("move")
def move(
    directory: Directory = None,
    config: Config = None,
    kubernetes: Kubernetes = None,
    setting: Setting = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Longest time to wait for the end of the former server."
        ),
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Move the mesh of a state directory into the store of several servers.

    Give the settings of the servers, with the setting store, and the directory of
    the former server, which must not run. For example:

      meshwright state move --state /var/lib/meshwright --kubernetes \
          --set store=kubernetes --set key_passphrase_file=/etc/meshwright/pass

    The store must be empty. An interrupted move can be repeated. The directory is
    marked afterwards, and no server uses its CA any more. A server with the
    setting store moves the mesh of its directory by itself when it starts.

    Exit status: 0 if the mesh is in the store, or if the directory has none.
    """
    from meshwright.cli.identities.mesh_state import moved

    result = moved(_flags(directory, config, kubernetes, setting), wait)
    if as_json:
        print_json({"moved": result.written is not None, "store": result.store, "records": result.records})
        return
    print_lines(result.text)


def _flags(
    directory: Path | None, config: Path | None, kubernetes: bool | None, setting: list[str] | None
) -> dict[str, object]:
    given = {"state": directory, "config": config, "kubernetes": kubernetes}
    return {name: value for name, value in given.items() if value is not None} | dict(named(setting or ()))


def _lines(root: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    from meshwright.transfer.state_file import in_words

    return f"mesh with the CA {root}", in_words(counts)
