"""The client of the bookstore: bookbuyer and bookthief are the same program with different names."""

import asyncio
from typing import Final

import aiohttp

from demo.apps import names
from demo.apps.counters import Counters
from demo.apps.probe import call
from demo.apps.settings import AppSettings

ROUND: Final = (("books-bought", names.BOOKS_BOUGHT), ("bookstore", names.BUY_A_BOOK))
"""Calls of each round: the name of the counter, and the path."""


class Client:
    """Client that lists the bought books and buys one in each round, over long-lived connections."""

    def __init__(self, settings: AppSettings, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters

    async def run(self) -> None:
        """List and buy books until cancelled, about `rate` rounds per second."""
        timeout = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                await self._round(session)
                await asyncio.sleep(1 / self._settings.rate)

    async def _round(self, session: aiohttp.ClientSession) -> None:
        headers = names.client_headers(self._settings.name)
        for destination, path in ROUND:
            url = self._settings.bookstore + path
            outcome, identity = await call(session, "GET", url, headers)
            if self._settings.logged:
                print(logged(url, outcome), flush=True)
            self._counters.called(destination, outcome, identity if path == names.BUY_A_BOOK else "")


def logged(url: str, outcome: str) -> str:
    """Return a log line for a call, in the form used by Open Service Mesh's own programs."""
    return f"Status: {outcome} ({url})" if outcome.isdigit() else f"Error fetching {url}: {outcome}"
