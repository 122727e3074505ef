"""`meshwright schema`: schemas of manifests for editors, and the reference page."""

from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text


def schema(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="Kind to print, for example Workload.", show_default="all kinds"
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option(
            "--page",
            help="Print the page docs/policy/reference.md. With --json, print all kinds and fields.",
        ),
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option(help="Directory to write all schemas to: all.json, and one file for each kind."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of manifests, for editors.

    An editor checks and completes manifests with the schema. For example:

      meshwright schema --directory ./schemas

    Exit status: 0, or 2 if the kind is unknown or a file cannot be written.
    """
    if sum((kind is not None, page, directory is not None)) > 1:
        raise CommandFailed("KIND, --page and --directory exclude each other: give one of them")
    from meshwright.cli.offline import reference

    if page and as_json:
        print_json(reference.records())
    elif page:
        print_text(reference.page())
    elif directory is None:
        print_json(reference.schema(kind))
    elif as_json:
        print_json({"written": [str(path) for path in reference.write(directory)]})
    else:
        for path in reference.write(directory):
            print_lines(str(path))
