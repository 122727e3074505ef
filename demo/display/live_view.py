"""Loop of the live view: every second, query the control plane and the programs, and show a picture."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import aiohttp
from rich.console import Console
from rich.live import Live

from demo import manifests
from demo.apps.counters import Counters
from demo.bookstore import Bookstore
from demo.display import picture
from demo.display.view import FullScreen, render, summary

_EVERY_SECONDS: Final = 1.0
_LINE_SECONDS: Final = 5.0
_WINDOW: Final = 10
"""Number of pictures for the shares of the split, so that a share is steady; rates use only the last four."""


class Watch:
    """Source of pictures of a bookstore; keeps the counters of the last pictures for rates and shares."""

    def __init__(self, bookstore: Bookstore) -> None:
        self._bookstore = bookstore
        self._seen: deque[tuple[float, Mapping[str, Counters]]] = deque(maxlen=_WINDOW)

    async def take(self) -> picture.Picture:
        """Take one picture. A component without an answer is shown as such and never raises an error."""
        counts = await self._counts()
        self._seen.append((time.monotonic(), counts))
        (_, before), (now, after) = self._seen[0], self._seen[-1]
        # Rates cover about three seconds, so that the effect of an edited manifest is visible soon.
        (recent, last) = self._seen[max(0, len(self._seen) - 4)]
        plane = self._bookstore.plane
        documents: dict[str, Mapping[str, object]] = {}
        silent = ""
        for path in ("/debug/access", "/debug/proxy", "/debug/certs", "/debug/policies"):
            try:
                documents[path] = await plane.ask(path)
            except (aiohttp.ClientError, OSError) as error:
                documents[path] = {}
                silent = f"{path}: {str(error) or type(error).__name__}"
        return picture.Picture(
            mode=self._bookstore.interception.mode.value,
            mesh=str(self._bookstore.mesh),
            variants=str(manifests.SOURCE),
            now=datetime.now(UTC),
            pairs=picture.pairs(documents["/debug/access"], last, after, now - recent),
            split=picture.split(before, after),
            sidecars=picture.sidecars(documents["/debug/proxy"]),
            certificates=picture.certificates(documents["/debug/certs"]),
            problems=picture.problems(documents["/debug/policies"]),
            silent=silent,
        )

    async def _counts(self) -> dict[str, Counters]:
        result = {}
        for name, program in self._bookstore.programs.items():
            try:
                result[name] = await program.status()
            except (aiohttp.ClientError, OSError):
                # A program without an answer counts as idle; `supervisor.check` reports a program that has
                # ended.
                result[name] = Counters()
        return result


async def show(bookstore: Bookstore, console: Console) -> None:
    """Show the bookstore's state until cancelled: in place on a terminal, else one line every 5 seconds."""
    watch = Watch(bookstore)
    if not console.is_terminal:
        while True:
            print(summary(await watch.take()), flush=True)
            bookstore.supervisor.check()
            await asyncio.sleep(_LINE_SECONDS)
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            live.update(FullScreen(render(await watch.take())), refresh=True)
            bookstore.supervisor.check()
            await asyncio.sleep(_EVERY_SECONDS)
