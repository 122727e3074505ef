"""The bookbuyer and the bookthief: the same program, under different names."""

import asyncio
from typing import Final

import aiohttp

from demo.apps import names
from demo.apps.counters import Counters
from demo.apps.probe import call
from demo.apps.settings import AppSettings

ROUND: Final = (("books-bought", names.BOOKS_BOUGHT), ("bookstore", names.BUY_A_BOOK))
"""What a client does in each round: the destination it counts under, and the path."""


class Client:
    """Asks for the books bought and buys one, round after round, over connections it keeps."""

    def __init__(self, settings: AppSettings, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters

    async def run(self) -> None:
        """Work until cancelled, `rate` rounds per second."""
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
    """Return a line about a call, such as Open Service Mesh's own programs print."""
    return f"Status: {outcome} ({url})" if outcome.isdigit() else f"Error fetching {url}: {outcome}"
