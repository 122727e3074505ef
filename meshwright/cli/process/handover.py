"""From the command line to the agent's program: the same process goes on as `meshwright.cli.agent_program`.

An agent stands beside every workload and keeps what it has ever imported. The command line, with what checks
its types, is as large as the agent: so it is left behind (execve).
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
"""What ps(1) and pgrep(1) call a process: the name of its script, until it executes another program."""


@dataclass(frozen=True, slots=True)
class AgentCommandLine:
    """What the command line said, and which variables of the environment it knows."""

    settings: AgentSettings
    log_level: str
    as_json: bool
    variables: frozenset[str]


def become_agent(told: AgentCommandLine) -> NoReturn:
    """Go on as the agent, under the name that this process has."""
    handed = os.memfd_create("told", 0)
    with open(handed, "wb", closefd=False) as file:
        pickle.dump((told, _own_name()), file)
    os.lseek(handed, 0, os.SEEK_SET)
    # The command line's own words are for people who look at processes.
    os.execv(sys.executable, (sys.executable, "-P", "-m", PROGRAM, str(handed), *sys.argv[1:]))  # noqa: S606


def handed_over(descriptor: int) -> AgentCommandLine:
    """Return what the program was told that this process was before, and take its name."""
    with open(descriptor, "rb") as file:
        told, name = pickle.load(file)  # noqa: S301 - this process wrote it
    with contextlib.suppress(OSError):  # it runs under another one
        _NAME.write_bytes(name)
    assert isinstance(told, AgentCommandLine)  # noqa: S101 - as above
    return told


def _own_name() -> bytes:
    """Return the name of this process, nothing where that is not shown: a name may be any bytes."""
    try:
        return _NAME.read_bytes()
    except OSError:
        return b""
