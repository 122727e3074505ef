"""Replace this process by a program that the kernel kills when the parent dies.

Run as a separate file: `python -I -S FILE PARENT PROGRAM [ARGUMENT...]`. PARENT is the agent's process ID.
The same could be done in the child between fork and exec, but not safely in a process with threads (gRPC's
fork handlers start some), and such a fork would copy more memory.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

NOT_STARTED: Final = 127
"""Exit status if the program cannot be run, as in a shell; standard error has the reason."""

_PR_SET_PDEATHSIG: Final = 1


def bound(command: list[str]) -> list[str]:
    """Return the command line for running a command that dies with this process."""
    return [sys.executable, "-I", "-S", str(Path(__file__)), str(os.getpid()), *command]


def become(parent: int, command: list[str]) -> NoReturn:
    """Make this process end with its parent process, and execute the program in this process."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before prctl
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the agent's own command, without a shell
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
        sys.exit(NOT_STARTED)


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
