"""Lines for people on standard output and standard error: each stays one line, whatever stands in it."""

import sys
from collections.abc import Iterable

from meshwright.mesh.terminal.printable import on_one_line


def print_lines(*lines: str) -> None:
    """Print an answer."""
    sys.stdout.write(joined(lines))


def say(*lines: str) -> None:
    """Say something beside the answer, on standard error."""
    sys.stderr.write(joined(lines))


def joined(lines: Iterable[str]) -> str:
    """Return text of these lines, in which nothing makes a line of its own, or a command of the terminal."""
    return "".join(f"{on_one_line(each)}\n" for each in lines)
