"""Reads a proxy's files as `meshwright.agent.certificates` does, and has them judged in a process that ends.

An agent stands beside every workload and keeps what it has ever imported; certificates change once in days.
The key goes through a pipe and nowhere else.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from meshwright.agent.credentials import CredentialFacts, Credentials, CredentialsError, Files
from meshwright.agent.subprocess_call import ApartFailed, apart
from meshwright.mesh.names import TrustDomain

PROGRAM: Final = "meshwright.agent.credential_check_main"
PATIENCE_SECONDS: Final = 60.0
"""It takes a fifth of a second of a processor, which on a machine that starts may be long."""
_WHO: Final = "the program that reads certificates"


@dataclass(frozen=True, slots=True)
class Question:
    """What goes through the pipe: the files, with the key as it is."""

    directory: Path
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authority: bytes = field(repr=False)
    trust_domain: TrustDomain | None = None


Answer = CredentialFacts | str
"""What comes back: what the files show, or why they cannot be used."""


async def read(
    directory: Path,
    *,
    shared: bool = False,
    told: TrustDomain | None = None,
    program: Sequence[str] | None = None,
    seconds: float = PATIENCE_SECONDS,
) -> Credentials:
    """Read the three files; raise CredentialsError where they cannot be used, or ApartFailed.

    `told` is the mesh's trust domain, as an option says it.
    """
    files = await asyncio.to_thread(Files.taken, directory, shared=shared, trust_domain=told)
    key = files.key.reveal()
    question = Question(files.directory, files.chain, key, files.authority, files.trust_domain)
    found = await apart(program or PROGRAM, question, seconds, _WHO)
    match found:
        case CredentialFacts():
            return Credentials.of(files, found)
        case str():
            raise CredentialsError(found)
        case _:
            raise ApartFailed(f"{_WHO} answered a {type(found).__name__}")
