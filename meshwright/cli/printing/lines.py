"""Lines for people on standard output and standard error, with one line for each value."""

import sys
from collections.abc import Iterable

from meshwright.mesh.terminal.printable import on_one_line


def print_lines(*lines: str) -> None:
    """Print the lines of an answer to standard output."""
    sys.stdout.write(joined(lines))


def print_remarks(*lines: str) -> None:
    """Print remarks to standard error."""
    sys.stderr.write(joined(lines))


def joined(lines: Iterable[str]) -> str:
    """Return the lines as text; line feeds and terminal control characters inside them are escaped."""
    return "".join(f"{on_one_line(line)}\n" for line in lines)
