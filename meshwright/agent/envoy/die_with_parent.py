"""Becomes another program, which the kernel kills when the process that started it dies.

Run as a file of its own: `python -I -S bound.py PARENT PROGRAM [ARGUMENT...]`. What is done here could be
done in the child between fork and exec, but not safely in a process with threads (gRPC's handlers of forks
start some there), and such a fork copies what need not be copied.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

NOT_STARTED: Final = 127
"""The status with which it ends where the program cannot be run, as a shell's; its words say why."""

_PR_SET_PDEATHSIG: Final = 1


def bound(command: list[str]) -> list[str]:
    """Return the command that runs a command so that it dies with this process."""
    return [sys.executable, "-I", "-S", str(Path(__file__)), str(os.getpid()), *command]


def become(parent: int, command: list[str]) -> NoReturn:
    """Bind to the parent, and become the program."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was asked
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the agent's own command, without a shell
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
        sys.exit(NOT_STARTED)


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
