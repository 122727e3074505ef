"""Typer's `CliRunner`, which builds the parsers of a program once instead of for each command.

Building those of `meshwright` takes 20 ms, and most commands take less. An application must not get further
commands after its first run here.
"""

import functools
from typing import Final

from typer import testing
from typer.testing import CliRunner, Result

__all__: Final = ["CliRunner", "Result"]

testing._get_command = functools.cache(testing._get_command)  # type: ignore[attr-defined]
