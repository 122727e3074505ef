"""The program as a whole: a command that fails prints one sentence on standard error, and sets a status."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.terminal.printable import printable


class Program(TyperGroup):
    """The group of all commands; handles the errors of every command in one place."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - Typer's own context
        """Parse the options before the command's name."""
        with _screened():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's own context, which it does not export
        """Run the named command."""
        try:
            with _screened():
                return super().invoke(ctx)
        except CommandFailed as failed:
            sys.stderr.write(failed.in_words())
            raise typer.Exit(failed.status) from failed


@contextlib.contextmanager
def _screened() -> Iterator[None]:
    """Escape quoted arguments in errors, such as a file name, before Typer prints the errors with colours."""
    try:
        yield
    except typer.TyperException as error:
        error.message = printable(error.message)
        raise
