"""From the command line to the agent: the process continues as `meshwright.cli.agent_program`.

The agent runs beside every workload, and all imports stay in memory. The command line with its type checking
needs as much memory as the agent. `become_agent` therefore executes the agent's program in the same process
(execve), and passes the settings in a memory file (memfd).
"""

import contextlib
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from meshwright.agent.settings import AgentSettings

PROGRAM: Final = "meshwright.cli.agent_program"
_NAME: Final = Path("/proc/self/comm")
"""The name of a process for ps(1) and pgrep(1): its script's name, until execve sets another."""


@dataclass(frozen=True, slots=True)
class AgentCommandLine:
    """The agent's parsed command line, and the environment variables of the options."""

    settings: AgentSettings
    log_level: str
    as_json: bool
    variables: frozenset[str]


def become_agent(command_line: AgentCommandLine) -> NoReturn:
    """Replace this process by the agent, which keeps the process's name; never returns."""
    handed = os.memfd_create("told", 0)
    with open(handed, "wb", closefd=False) as file:
        pickle.dump((command_line, _own_name()), file)
    os.lseek(handed, 0, os.SEEK_SET)
    # The arguments are repeated only for people who look at processes.
    os.execv(sys.executable, (sys.executable, "-P", "-m", PROGRAM, str(handed), *sys.argv[1:]))  # noqa: S606


def handed_over(descriptor: int) -> AgentCommandLine:
    """Return the command line from the descriptor of `become_agent`, and restore the process's name."""
    with open(descriptor, "rb") as file:
        arguments, name = pickle.load(file)  # noqa: S301 - this process wrote it
    with contextlib.suppress(OSError):  # the agent then keeps the other name
        _NAME.write_bytes(name)
    assert isinstance(arguments, AgentCommandLine)  # noqa: S101 - as above
    return arguments


def _own_name() -> bytes:
    """Return the name of this process, which may be any bytes, or b"" if unreadable."""
    try:
        return _NAME.read_bytes()
    except OSError:
        return b""
