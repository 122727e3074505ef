"""Taps at the other servers of a mesh, as one source of lines for a tap of this server."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from meshwright.admin.jsonable import Document
from meshwright.admin.replicas.view import Query
from meshwright.traffic.taps import WAITING

BEGIN_SECONDS: Final = 3.0
"""Longest wait in seconds for the first lines of other servers."""


class LostServerError(Exception):
    """Error for another server that does not answer, or stops answering; the message is the reason."""


class OtherTaps(Protocol):
    """The other servers of the mesh, as a tap needs them."""

    @property
    def replica(self) -> str:
        """Return the name of this server."""

    def names(self) -> Sequence[str]:
        """Return the names of all servers that are here, this one included, sorted."""

    def follow(self, name: str, path: str, query: Query) -> AbstractAsyncContextManager[AsyncIterable[bytes]]:
        """Yield the lines of a long answer of another server. Raises LostServerError."""


@dataclass
class TapsElsewhere:
    """The taps of one client at other servers. `noticed` is called for each line."""

    others: OtherTaps
    path: str
    query: Query
    noticed: Callable[[], None]
    _lines: deque[Document] = field(default_factory=deque)
    _lost: int = 0
    _proxies: int = 0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def begin(self, names: Sequence[str]) -> int:
        """Begin the taps, and return the number of proxies that they watch.

        A server that does not answer within the time limit of a question is named in a line.
        """
        begun = [asyncio.Event() for _ in names]
        self._tasks = [
            asyncio.create_task(self._follow(name, event), name=f"tap at {name}")
            for name, event in zip(names, begun, strict=True)
        ]
        # A server may fall silent after the first bytes of its answer, and must not hold up the others.
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_SECONDS):
                await asyncio.gather(*(event.wait() for event in begun))
        return self._proxies

    def take(self) -> tuple[list[Document], int]:
        """Return the lines since the last call, and the number of requests that were too many."""
        lines, lost = list(self._lines), self._lost
        self._lines.clear()
        self._lost = 0
        return lines, lost

    async def end(self) -> None:
        """End the taps at all servers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, name: str, begun: asyncio.Event) -> None:
        try:
            async with self.others.follow(name, self.path, self.query) as lines:
                async for line in lines:
                    self._take(name, json.loads(line))
                    begun.set()
        except LostServerError as error:
            self._add({"missing": {"replica": name, "reason": str(error)}})
        except ValueError:
            self._add({"missing": {"replica": name, "reason": "a line of the answer is not JSON"}})
        finally:
            begun.set()

    def _take(self, name: str, line: object) -> None:
        match line:
            case {"watching": {"proxies": int(count)}}:
                self._proxies += count
            case {"request": dict(request)}:
                self._add({"request": request | {"replica": name}})
            case {"lost": int(count)}:
                self._lost += count
                self.noticed()
            case _:  # the end, which each server says for itself
                return

    def _add(self, line: Document) -> None:
        # The client must hear of a missing server even if it reads too slowly for all requests.
        if len(self._lines) < WAITING or "missing" in line:
            self._lines.append(line)
        else:
            self._lost += 1
        self.noticed()
