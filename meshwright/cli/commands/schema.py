"""`meshwright schema`: what can be written in a manifest, for editors, and as the page of the documents."""

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
        str | None, typer.Argument(metavar="[KIND]", help="One kind, such as Workload. None: all.")
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Print docs/reference.md; with --json all kinds and fields.")
    ] = False,
    directory: Annotated[
        Path | None, typer.Option(help="Write all schemas there: all.json, and one for each kind.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a JSON Schema (draft 2020-12) of manifests, by which editors check and complete them.

    Status: 0, or 2 if there is no such kind, or the files cannot be written.
    """
    if sum((kind is not None, page, directory is not None)) > 1:
        raise CommandFailed("give KIND, --page or --directory, not several of them")
    from meshwright.cli.offline import reference

    if page and as_json:
        print_json(reference.records())
    elif page:
        print_text(reference.page())
    elif directory is None:
        print_json(reference.schema(kind))
    elif as_json:
        print_json({"written": [str(each) for each in reference.write(directory)]})
    else:
        for each in reference.write(directory):
            print_lines(str(each))
