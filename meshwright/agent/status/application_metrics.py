"""Scrape of an application's metrics, with bounds on time and memory.

The agent's user is not intercepted and can reach every address. The agent therefore requests one URL only,
and never follows a redirect.
"""

import asyncio
import enum
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import aiohttp
import structlog

from meshwright.agent.bounded_body import TooLarge, UnreadableBody, body
from meshwright.agent.statistics.exposition import Family, Kind, Sample, written
from meshwright.agent.status.application_page import (
    ApplicationPage,
    DropReason,
    TooManyLines,
    application_page,
)

MOST_BYTES: Final = 8 * 1024 * 1024
"""Greatest size of a page in bytes, after decompression."""
SECONDS: Final = 5.0
"""Seconds for an answer, from connecting to the last byte."""
SAY_SECONDS: Final = 300.0
"""Least seconds between two log lines."""
ACCEPT: Final = "text/plain; version=0.0.4; charset=utf-8"

_log = structlog.get_logger("agent.application_metrics")


class Failure(enum.StrEnum):
    """The reason for a failed scrape of the application, and the label `reason` of a metric."""

    UNREACHABLE = "unreachable"
    SLOW = "timeout"
    STATUS = "status"
    REDIRECT = "redirect"
    LARGE = "too_large"
    UNREADABLE = "unreadable"


class ScrapeFailed(Exception):
    """The application's page of metrics is missing, with the reason."""

    def __init__(self, reason: Failure, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class ApplicationMetrics:
    """The metrics at one URL of the application; `url` is None for an application without metrics."""

    def __init__(self, url: str | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._monotonic = monotonic
        self._scraping: asyncio.Task[bytes] | None = None
        self._failed: Counter[Failure] = Counter()
        self._dropped: Counter[DropReason] = Counter()
        self._quiet_until = float("-inf")

    async def page(self) -> bytes:
        """Return the application's lines, or a comment with the reason why they are missing.

        Concurrent callers share one scrape, so that they cannot multiply the cost.
        """
        if self._url is None:
            return b""
        if self._scraping is None or self._scraping.done():
            self._scraping = asyncio.create_task(self._page(self._url), name="application metrics")
        return await asyncio.shield(self._scraping)

    def own_metrics(self) -> str:
        """Return the agent's metrics about the scrapes: failed scrapes and dropped lines, by reason."""
        return "" if self._url is None else written(self._families())

    async def _page(self, url: str) -> bytes:
        try:
            content = await fetched(url)
            result = await asyncio.to_thread(_read, content)
        except ScrapeFailed as error:
            self._failed[error.reason] += 1
            self._log_once("application metrics left out", reason=str(error))
            return _comment(f"the application's metrics are left out: {error}")
        if not result.dropped:
            return result.content
        self._dropped.update(result.dropped)
        counts = {
            drop_reason.value: result.dropped[drop_reason]
            for drop_reason in DropReason
            if drop_reason in result.dropped
        }
        self._log_once("lines of application metrics left out", **counts, first=result.first)
        words = ", ".join(f"{reason} {count}" for reason, count in counts.items())
        return result.content + _comment(f"lines of the application's metrics that are left out: {words}")

    def _log_once(self, event: str, **words: str | int) -> None:
        if (now := self._monotonic()) >= self._quiet_until:
            self._quiet_until = now + SAY_SECONDS
            _log.warning(event, url=self._url, **words)

    def _families(self) -> Iterator[Family]:
        yield Family(
            "meshwright_agent_application_scrapes_failed_total",
            Kind.COUNTER,
            "Failed scrapes of the application's metrics.",
            tuple(Sample((("reason", failure),), self._failed[failure]) for failure in Failure),
        )
        yield Family(
            "meshwright_agent_application_lines_dropped_total",
            Kind.COUNTER,
            "Lines of the application's metrics that were left out.",
            tuple(
                Sample((("reason", drop_reason),), self._dropped[drop_reason]) for drop_reason in DropReason
            ),
        )


async def fetched(url: str) -> bytes:
    """GET a URL and return the body of an answer with status 200; raise ScrapeFailed."""
    try:
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept": ACCEPT, "Accept-Encoding": "identity"},
                auto_decompress=False,
            ) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            if 300 <= answer.status < 400:
                words = f"the answer is a redirect (status {answer.status}), which is not followed"
                raise ScrapeFailed(Failure.REDIRECT, words)
            if answer.status != 200:
                raise ScrapeFailed(Failure.STATUS, f"the answer has status {answer.status}, not 200")
            return await body(answer, MOST_BYTES)
    except TooLarge:
        words = f"the page has more than {MOST_BYTES >> 20} MiB"
        raise ScrapeFailed(Failure.LARGE, words) from None
    except UnreadableBody as error:
        raise ScrapeFailed(Failure.UNREADABLE, f"the page cannot be read: {error}") from error
    except TimeoutError:
        raise ScrapeFailed(Failure.SLOW, f"the answer is not complete within {SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: an invalid URL
        # The error's message is left out, because it may quote the application's bytes.
        raise ScrapeFailed(Failure.UNREACHABLE, f"no answer ({type(error).__name__})") from error


def _read(content: bytes) -> ApplicationPage:
    try:
        return application_page(content)
    except TooManyLines as error:
        raise ScrapeFailed(Failure.LARGE, f"the page is too large: {error}") from None


def _comment(words: str) -> bytes:
    return f"# meshwright: {' '.join(words.split())}\n".encode()
