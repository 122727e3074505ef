"""The program as a whole: a command that fails is one sentence on standard error, and a status."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.terminal.printable import printable


class Program(TyperGroup):
    """Runs commands, and says in one place what went wrong with any of them."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - Typer's own context
        """Read the command line up to the command's name."""
        with _screened():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's own context, which it does not export
        """Run the command that was named."""
        try:
            with _screened():
                return super().invoke(ctx)
        except CommandFailed as failed:
            sys.stderr.write(failed.in_words())
            raise typer.Exit(failed.status) from failed


@contextlib.contextmanager
def _screened() -> Iterator[None]:
    """Escape what is quoted of a command line, such as a file's name, before Typer prints it with colours."""
    try:
        yield
    except typer.TyperException as error:
        error.message = printable(error.message)
        raise
