"""Reads a proxy's files as `agent.certificates` does, and has them judged in a process that ends.

An agent stands beside every workload and keeps what it has ever imported; certificates change once in days.
The key goes through a pipe and nowhere else.
"""

import asyncio
import contextlib
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent.credentials import Credentials, CredentialsError, Files, Shows
from agent.envoy.die_with_parent import bound
from agent.errors import AgentError

PROGRAM: Final = "agent.reader"
PATIENCE_SECONDS: Final = 60.0
"""It takes a fifth of a second of a processor, which on a machine that starts may be long."""
_MOST_WORDS: Final = 300
_WHO: Final = "the program that reads certificates"


class ReaderFailed(AgentError):
    """Whether the files can be used is not known: who should say so did not. To be tried again."""


@dataclass(frozen=True, slots=True)
class Question:
    """What goes through the pipe: the files, with the key as it is."""

    directory: Path
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authority: bytes = field(repr=False)


Answer = Shows | str
"""What comes back: what the files show, or why they cannot be used."""


def command() -> Sequence[str]:
    """Return what runs the program, so that it does not outlive this process."""
    # -P: no folder in which somebody starts an agent has modules of it.
    return bound([sys.executable, "-P", "-m", PROGRAM])


async def read(
    directory: Path,
    *,
    shared: bool = False,
    program: Sequence[str] | None = None,
    seconds: float = PATIENCE_SECONDS,
) -> Credentials:
    """Read the three files; raise CredentialsError where they cannot be used, or ReaderFailed."""
    files = await asyncio.to_thread(Files.taken, directory, shared=shared)
    question = Question(files.directory, files.chain, files.key.reveal(), files.authority)
    said = await _asked(program or command(), pickle.dumps(question), seconds)
    try:
        found = pickle.loads(said)  # noqa: S301 - our own program wrote it
    except Exception as error:
        raise ReaderFailed(f"{_WHO} answered what cannot be read ({len(said)} bytes)") from error
    match found:
        case Shows():
            return Credentials.of(files, found)
        case str():
            raise CredentialsError(found)
        case _:
            raise ReaderFailed(f"{_WHO} answered a {type(found).__name__}")


async def _asked(program: Sequence[str], question: bytes, seconds: float) -> bytes:
    """Return what the program answers; it has ended when this returns or raises."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        raise ReaderFailed(f"cannot run {_WHO}: {error.strerror}") from error
    try:
        async with asyncio.timeout(seconds):
            said, words = await process.communicate(question)
    except TimeoutError:
        raise ReaderFailed(f"{_WHO} took more than {seconds:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        last = words.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ReaderFailed(f"{_WHO} ended with status {process.returncode}: {last[:_MOST_WORDS]}")
    return said
