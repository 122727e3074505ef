"""`meshwright lint`: everything that the server would say of a directory of manifests, without a server."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.errors import CommandFailed, OfflineError
from cli.options import AsJson
from cli.printing.answers import print_json

if TYPE_CHECKING:
    from mesh.problems import Problem

_UNREADABLE: Final = 2


def lint(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Directory of manifests.", show_default=False)
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail for warnings too.")] = False,
    as_json: AsJson = False,
    codes: Annotated[bool, typer.Option("--codes", help="Print what each code means.")] = False,
) -> None:
    """Say what is wrong with a directory of manifests; docs/codes.md explains the codes.

    Exit status: 0 without errors, 1 with errors (with --strict also for warnings), 2 if it cannot be read.
    """
    if codes:
        from cli.printing.codes import document

        sys.stdout.write(document())
        return
    found = _problems(directory)
    if as_json:
        from admin.pages.debug import problem

        print_json([problem(each) for each in found])
    else:
        sys.stdout.write(text(found))
    failing = {"error", "warning"} if strict else {"error"}
    if any(each.severity.value in failing for each in found):
        raise typer.Exit(1)


def _problems(directory: Path | None) -> "Sequence[Problem]":
    from cli.offline.mesh import read

    if directory is None:
        raise CommandFailed("give the directory of manifests, or --codes", _UNREADABLE)
    try:
        return read(directory).problems
    except OfflineError as error:
        raise CommandFailed(error, _UNREADABLE) from error


def text(found: "Sequence[Problem]") -> str:
    """Return one line for each problem, and how many there are of each severity."""
    counts = Counter(each.severity.value for each in found)
    summary = ", ".join(f"{counts[name]} {name}{'' if counts[name] == 1 else 's'}" for name in sorted(counts))
    lines = [f"{each.severity.value}: {each}" for each in found]
    return "\n".join((*lines, summary or "nothing to say")) + "\n"
