"""The program as a whole: a command that fails is one sentence on standard error, and a status."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from cli.errors import CommandFailed


class Program(TyperGroup):
    """Runs commands, and says in one place what went wrong with any of them."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's own context, which it does not export
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except CommandFailed as failed:
            sys.stderr.write(failed.in_words())
            raise typer.Exit(failed.status) from failed
