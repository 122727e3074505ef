"""Resolver that imports the DNS library with the first question, because most servers need no DNS."""

import asyncio
from collections.abc import Iterable
from types import ModuleType
from typing import Final

from meshwright.providers.dns.nameserver import Nameserver
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question

TIMEOUT_SECONDS: Final = 5.0
"""Maximum seconds for a question, including all nameservers and the repetition over TCP."""


class Resolver:
    """Client of the given nameservers, in order, or of the system's nameservers without any.

    Names are queried as given: neither search domains nor the hosts file are used. The system's nameservers
    are read from the configuration for each question, since they can change.
    """

    def __init__(self, nameservers: Iterable[Nameserver] = (), timeout: float = TIMEOUT_SECONDS) -> None:
        self._nameservers = tuple(nameservers)
        self._timeout = timeout
        self._library: ModuleType | None = None

    async def ask(self, question: Question) -> DnsAnswer | DnsFailure:
        """Query the nameservers; return the answer. A missing name is an answer, not a failure."""
        if self._library is None:
            self._library = await asyncio.to_thread(_library)
        result: DnsAnswer | DnsFailure = await self._library.ask(question, self._nameservers, self._timeout)
        return result


def _library() -> ModuleType:
    """Import the module that uses the DNS library, and return the module."""
    from meshwright.providers.dns import client as asking

    return asking
