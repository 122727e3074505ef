"""Load: requests at a steady rate until stopped, with a count of each outcome."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from demo.apps.messages import Answer, Request
from demo.apps.names import POD_HEADER
from demo.apps.outcomes import CALL_ERRORS, is_allowed, of_error

_KEPT_FAILURES: Final = 20
_WORDS: Final = 120
"""Maximum length of the body that is kept of a failed request; proxies write the cause into the body."""


@dataclass(frozen=True, slots=True)
class LoadRequest(Request):
    """A load: URL, headers, and the requests per second of all clients together.

    Every second client opens a new connection for each request; the others keep their connections.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    rate: float = 50.0
    clients: int = 4
    timeout: float = 15.0


@dataclass(slots=True)
class Totals(Answer):
    """Totals of a load: outcomes, served requests by Pod, and the first 20 failures with time and cause."""

    outcomes: Counter[str] = field(default_factory=Counter)
    pods: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """Return the number of requests that the load has made."""
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        """Return the number of the load's requests without a successful response."""
        return sum(number for outcome, number in self.outcomes.items() if not is_allowed(outcome))


class Load:
    """A running load of requests; starts when the object is created."""

    def __init__(self, wanted: LoadRequest) -> None:
        self.totals = Totals()
        self._wanted = wanted
        self._began = time.monotonic()
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="load")

    async def stop(self) -> Totals:
        """Send no more requests, wait for requests in progress, and return the totals."""
        self._stopping.set()
        await self._task
        return self.totals

    async def _run(self) -> None:
        # Both kinds of connections are needed: kept ones show how a Pod drains, and new ones how it is
        # chosen.
        await asyncio.gather(
            *(self._client(fresh=bool(number % 2)) for number in range(self._wanted.clients))
        )

    async def _client(self, *, fresh: bool) -> None:
        connector = aiohttp.TCPConnector(force_close=fresh)
        timeout = aiohttp.ClientTimeout(total=self._wanted.timeout)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            while not self._stopping.is_set():
                await self._request(session)
                await asyncio.sleep(self._wanted.clients / self._wanted.rate)

    async def _request(self, session: aiohttp.ClientSession) -> None:
        at = time.monotonic() - self._began
        try:
            async with session.get(self._wanted.url, headers=dict(self._wanted.headers)) as response:
                words = await response.text()
                outcome, pod = str(response.status), response.headers.get(POD_HEADER, "")
        except CALL_ERRORS as error:
            outcome, pod, words = of_error(error), "", ""
        self.totals.outcomes[outcome] += 1
        if is_allowed(outcome):
            self.totals.pods[pod] += 1
        elif len(self.totals.failures) < _KEPT_FAILURES:
            self.totals.failures.append(f"{at:.1f} s {outcome} {words[:_WORDS]}".strip())
