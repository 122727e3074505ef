"""`meshwright version`, and `meshwright --version`."""

from importlib.metadata import version as installed

import typer

from meshwright.cli.options import AsJson
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json


def version(as_json: AsJson = False) -> None:
    """Print the version of this program."""
    result = installed("meshwright")
    if as_json:
        print_json({"version": result})
    else:
        print_lines(result)


def printed(wanted: bool) -> None:
    """If `wanted`, print the version and end the program."""
    if wanted:
        version()
        raise typer.Exit
