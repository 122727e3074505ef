"""Who asks nameservers: with the DNS library from the first question on, and without before."""

import asyncio
from collections.abc import Iterable
from types import ModuleType
from typing import Final

from meshwright.providers.dns.nameserver import Nameserver
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question

TIMEOUT_SECONDS: Final = 5.0
"""How long a question may take, over all nameservers and with its repetition over TCP."""


class Resolver:
    """Asks the nameservers given, in their order, or those of the system if there are none.

    Names are asked for as they are: neither search domains nor a hosts file count. The system's nameservers
    are looked up with each question, since they change.
    """

    def __init__(self, nameservers: Iterable[Nameserver] = (), timeout: float = TIMEOUT_SECONDS) -> None:
        self._nameservers = tuple(nameservers)
        self._timeout = timeout
        self._library: ModuleType | None = None

    async def ask(self, question: Question) -> DnsAnswer | DnsFailure:
        """Return the answer to a question; that there is no such name is an answer, never a failure."""
        if self._library is None:
            self._library = await asyncio.to_thread(_library)
        found: DnsAnswer | DnsFailure = await self._library.ask(question, self._nameservers, self._timeout)
        return found


def _library() -> ModuleType:
    """Return the module that knows the library, which is imported for the first Service that needs it."""
    from meshwright.providers.dns import client as asking

    return asking
