"""Constant requests through real proxies, with the time and outcome of each."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

ANSWERED: Final = "answered"


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the moment of its beginning by the monotonic clock, its seconds, and its outcome."""

    began: float
    seconds: float
    outcome: str


@dataclass
class Requests:
    """All requests so far, in order of their ends."""

    every: list[Request] = field(default_factory=list)

    def since(self, moment: float) -> list[Request]:
        """Return the requests that began at this moment or later."""
        return [request for request in self.every if request.began >= moment]

    def failures(self, moment: float) -> Counter[str]:
        """Return the number of each outcome but an answer, of requests that began since a moment."""
        return Counter(item.outcome for item in self.since(moment) if item.outcome != ANSWERED)

    async def keep_sending(self, call: Callable[[], Awaitable[str]], pause: float) -> None:
        """Send one request after another, each `pause` seconds after the one before has ended."""
        while True:
            began = time.monotonic()
            outcome = await call()
            self.every.append(Request(began, time.monotonic() - began, outcome))
            await asyncio.sleep(pause)


@asynccontextmanager
async def constant_requests(
    calls: Sequence[Callable[[], Awaitable[str]]], pause: float
) -> AsyncIterator[Requests]:
    """Send requests by each call while the block runs."""
    result = Requests()
    tasks = [asyncio.create_task(result.keep_sending(call, pause), name="requests") for call in calls]
    try:
        yield result
        assert not any(task.done() for task in tasks), "the requests have ended by themselves"
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
