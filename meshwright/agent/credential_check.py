"""Check of a proxy's files, like `meshwright.agent.certificates`, in a short-lived subprocess.

An agent runs beside every workload and keeps all imports in memory, but certificates change only once in
days. The key is passed through a pipe and nowhere else.
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
"""Seconds for the subprocess. It needs 0.2 s of CPU time, which takes long while a machine starts."""
_WHO: Final = "the subprocess that reads certificates"


@dataclass(frozen=True, slots=True)
class Question:
    """Input of the subprocess that checks credentials: content of the files, including the private key."""

    directory: Path
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authority: bytes = field(repr=False)
    trust_domain: TrustDomain | None = None


Answer = CredentialFacts | str
"""Output of the subprocess: the content of the files, or the reason why they cannot be used."""


async def read(
    directory: Path,
    *,
    shared: bool = False,
    configured: TrustDomain | None = None,
    program: Sequence[str] | None = None,
    seconds: float = PATIENCE_SECONDS,
) -> Credentials:
    """Read the three files; raise CredentialsError if they cannot be used, or ApartFailed.

    `configured` is the mesh's trust domain, if given by an option.
    """
    files = await asyncio.to_thread(Files.taken, directory, shared=shared, trust_domain=configured)
    key = files.key.reveal()
    question = Question(files.directory, files.chain, key, files.authority, files.trust_domain)
    result = await apart(program or PROGRAM, question, seconds, _WHO)
    match result:
        case CredentialFacts():
            return Credentials.from_files(files, result)
        case str():
            raise CredentialsError(result)
        case _:
            raise ApartFailed(f"{_WHO} returned a {type(result).__name__}")
