"""Calls to short-lived programs, so that their imports do not stay in the agent's memory.

Input and output are pickled and pass through pipes; secrets pass through these and nowhere else.
"""

import pickle
import sys
from collections.abc import Sequence
from typing import Final

from meshwright.agent.envoy.die_with_parent import bound
from meshwright.agent.errors import AgentError
from meshwright.processes.command import Command, run

_MOST_WORDS: Final = 300


class ApartFailed(AgentError):
    """A short-lived subprocess of the agent ended without an answer; the call can be tried again."""


def command(program: str) -> Sequence[str]:
    """Return the command for running a module in a process that does not outlive this one."""
    # -P: modules in the current directory must not be imported, because any user may choose it.
    return bound([sys.executable, "-P", "-m", program])


async def apart(program: str | Sequence[str], question: object, seconds: float, name: str) -> object:
    """Run a program to the end, and return the answer.

    Raise ApartFailed, whose message begins with `name`.
    """
    argv = command(program) if isinstance(program, str) else program
    answer = await _run_program(argv, pickle.dumps(question), seconds, name)
    try:
        return pickle.loads(answer)  # noqa: S301 - our own program wrote it
    except Exception as error:
        raise ApartFailed(f"{name} returned an answer that cannot be read ({len(answer)} bytes)") from error


async def _run_program(argv: Sequence[str], question: bytes, seconds: float, name: str) -> bytes:
    try:
        ended = await run(Command(argv, stdin=question), seconds)
    except TimeoutError:
        raise ApartFailed(f"{name} took more than {seconds:g} s") from None
    except OSError as error:
        raise ApartFailed(f"cannot run {name}: {error.strerror}") from error
    if ended.status:
        last = ended.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ApartFailed(f"{name} ended with status {ended.status}: {last[:_MOST_WORDS]}")
    return ended.output
