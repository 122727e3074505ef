"""Feed of the keys in a span: listed once, then watched, with each difference delivered once.

A broken watch goes on from the last position, so that a short cut needs only the missed events. Where the
store cannot go on from there (a compacted revision, a restored snapshot, another store), the feed lists all
keys and compares the list with the known keys. The comparison has a digest of each content, because a
restored store uses the same revisions again for other contents.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn, Self

import structlog

from meshwright.etcd.client import Client
from meshwright.etcd.errors import EtcdError, RefusedError, RevisionGoneError, UnavailableError
from meshwright.etcd.values import KeyValue, Page, Position, Span
from meshwright.etcd.watch import Events, Watch

PAGE: Final = 1000
"""Keys in a page of a list."""

SMALLEST_PAGE: Final = 50
"""Keys in a page after failures: each page without an answer in time halves the next one."""

_log = structlog.get_logger("etcd")


@dataclass(frozen=True, slots=True)
class Difference:
    """New and changed keys, and names of deleted keys."""

    items: tuple[KeyValue, ...] = ()
    removed: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses after failures in seconds: from `first`, doubled up to `longest`; `refused` after a refusal."""

    first: float = 0.1
    longest: float = 2.0
    refused: float = 5.0

    def after(self, failures: int, chance: float) -> float:
        """Return the pause after failures in a row; `chance` is a random number from 0 to 1."""
        return min(self.first * 2.0 ** min(failures - 1, 16), self.longest) * (0.5 + chance / 2)


PAUSES: Final = Pauses()


@dataclass(frozen=True, slots=True)
class _Form:
    """A known form of a key: the revision of the last change, and a digest of the content."""

    modified: int
    digest: bytes

    @classmethod
    def of(cls, item: KeyValue) -> Self:
        return cls(item.modified, hashlib.blake2b(item.value, digest_size=16).digest())


class Feed:
    """Feed of one span for one receiver.

    `receive` is called with all keys first, also if there are none, and then with each difference. `note` is
    called with the sentence of each failure, and with an empty text after each sign of life.
    """

    def __init__(
        self,
        client: Client,
        span: Span,
        receive: Callable[[Difference], None],
        pauses: Pauses = PAUSES,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._span = span
        self._receive = receive
        self._pauses = pauses
        self._note = note
        self._known: dict[bytes, _Form] = {}
        self._latest: tuple[bytes, _Form] | None = None
        self._position: Position | None = None
        self._page = PAGE
        self._is_listed = False
        self._failures = 0

    async def run(self) -> None:
        """Deliver differences until cancelled. A failure of the store is logged, and tried again."""
        while True:
            try:
                await self._follow()
            except RevisionGoneError as error:
                self._position = None
                _log.info("keys of etcd are listed again", span=self._name, reason=str(error))
                await asyncio.sleep(self._pauses.first)  # a member behind the others looks like this too
            except EtcdError as error:
                self._failures += 1
                self._note(str(error))
                if self._failures == 1:  # one warning for an outage
                    _log.warning("changes in etcd cannot be followed now", span=self._name, error=str(error))
                refused = isinstance(error, RefusedError)
                pause = self._pauses.after(self._failures, random.random())  # noqa: S311 - no secret
                await asyncio.sleep(self._pauses.refused if refused else pause)

    @property
    def _name(self) -> str:
        return self._span.start.decode("utf-8", "replace")

    async def _follow(self) -> NoReturn:
        """Watch from the position of the feed, or of a new list, until the watch ends with an error."""
        resumed, position = self._position, self._position or await self._list()
        # From the position itself, whose change is known, and not from the next revision: etcd answers a
        # question for progress only after the store has reached the first revision of the watch. A quiet
        # store would look like a dead one.
        async with self._client.watch(self._span, position.revision) as watch:
            if watch.position.is_behind(position) or (resumed and not await self._has_same_history()):
                raise RevisionGoneError("the store is another one, or was restored from a snapshot")
            self._position = Position(watch.position.cluster, watch.position.term, position.revision)
            if self._failures:
                _log.info("changes in etcd are followed again", span=self._name)
            self._failures = 0
            self._note("")
            await self._deliver_from(watch)

    async def _deliver_from(self, watch: Watch) -> NoReturn:
        while True:
            self._advance(await watch.events())
            self._note("")

    async def _has_same_history(self) -> bool:
        """Return whether the store has the newest delivered key, in the same form at the same revision.

        A restored store may have overtaken the lost revisions before this feed connects again. Raises
        RevisionGoneError for a compacted revision.
        """
        if self._latest is None:
            return False  # without a known key a list is cheap
        key, form = self._latest
        item = await self._client.get(key, form.modified)
        return item is not None and _Form.of(item) == form

    def _advance(self, events: Events) -> None:
        """Deliver events, and move the position."""
        last: dict[bytes, KeyValue | None] = {}
        for change in events.changes:
            if isinstance(change, bytes):
                last[change] = None
            else:
                last[change.key] = change
        self._deliver(
            tuple(item for item in last.values() if item is not None),
            tuple(key for key, item in last.items() if item is None),
        )
        before = self._position
        if before is not None and events.revision > before.revision:
            self._position = Position(before.cluster, before.term, events.revision)

    async def _list(self) -> Position:
        """List all keys at one revision, deliver the difference, and return the position of the list."""
        page = await self._read_page(self._span, 0)
        position, items = page.position, list(page.items)
        while page.more:
            rest = Span(items[-1].key + b"\0", self._span.end)
            page = await self._read_page(rest, position.revision)
            if page.position.cluster != position.cluster:
                raise RevisionGoneError("the pages of a list come from two stores")
            items += page.items
        there = {item.key for item in items}
        self._latest = None
        self._deliver(tuple(items), tuple(key for key in self._known if key not in there))
        self._position, self._page = position, PAGE
        return position

    async def _read_page(self, span: Span, revision: int) -> Page:
        try:
            return await self._client.page(span, revision, self._page)
        except UnavailableError as error:
            if not error.is_undone:
                self._page = max(self._page // 2, SMALLEST_PAGE)
            raise

    def _deliver(self, items: tuple[KeyValue, ...], removed: tuple[bytes, ...]) -> None:
        """Deliver new and changed items, and the known ones of the removed keys."""
        news: list[KeyValue] = []
        for item in items:
            form = _Form.of(item)
            if self._latest is None or form.modified >= self._latest[1].modified:
                self._latest = item.key, form
            if self._known.get(item.key) != form:
                self._known[item.key] = form
                news.append(item)
        gone = tuple(key for key in removed if self._known.pop(key, None) is not None)
        if news or gone or not self._is_listed:
            self._is_listed = True
            self._receive(Difference(tuple(news), gone))
