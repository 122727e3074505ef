"""The DNS as a source that follows others: endpoints found under the names in Services, kept current."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

import structlog

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems, log_gone, log_new
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness
from meshwright.providers.dns.book import DnsBook
from meshwright.providers.dns.last_answers import SavedAnswers
from meshwright.providers.dns.records import Question
from meshwright.providers.dns.resolver import Resolver
from meshwright.providers.dns.schedule import PACING, Pacing
from meshwright.providers.dns.slices import NAME
from meshwright.providers.guard import HOLD
from meshwright.providers.moments import Moment, monotonic

PATIENCE: Final = timedelta(seconds=5)
"""How long the first answers are waited for if nothing else is said."""

AT_ONCE: Final = 32
"""How many questions are under way at a time."""

SERVICES_AT_ONCE: Final = 64
"""How many services are brought up to date before others have a turn on the event loop."""

GATHER_SECONDS: Final = 0.02
"""Answers that come within so long of each other are taken over together, where others are awaited."""

SETTLE_SECONDS: Final = 0.1
"""How long a name that has just come is waited for, so that its Service is not published without it."""

KEEP_SECONDS: Final = 60.0
"""How old what is kept may be where nothing but the age of answers has changed."""

KEEP_PAUSE_SECONDS: Final = 1.0
"""How long nothing is written after something was."""

_log = structlog.get_logger("providers.dns.source")


class DnsSource:
    """EndpointSlices from the DNS, for the Services that `follow` was told of.

    `clock` gives the time with its zone; `hold` is how long an answer without any address is held back from
    a service that has some; `patience` how long `first` waits. Nothing is asked until `first` or `run`.

    It begins with what was `kept` by the one before. `keep` is given what the next one may begin with: soon
    after slices have changed, else once a minute, and in the end. It is called in a thread (in the end by the
    event loop itself), never twice at a time, and must not raise.
    """

    name = NAME

    def __init__(
        self,
        resolver: Resolver,
        clock: Callable[[], datetime],
        *,
        pacing: Pacing = PACING,
        hold: timedelta = HOLD,
        patience: timedelta = PATIENCE,
        monotonic: Callable[[], Moment] = monotonic,
        kept: SavedAnswers | None = None,
        keep: Callable[[SavedAnswers], None] = lambda _: None,
    ) -> None:
        self._resolver = resolver
        self._clock = clock
        self._monotonic = monotonic
        self._patience = patience
        self._book = DnsBook(pacing, hold, kept)
        self._keep = keep
        self._unkept = False
        self._begun = kept is None
        self._moved = asyncio.Event()
        self._objects = self._book.objects
        self._problems: Problems = ()
        self._last_event: datetime | None = None
        self._asking: set[Question] = set()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._settle_until = self._monotonic()

    def follow(self, objects: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Resolve the names in these Services from now on, and no longer those in Services that are gone."""
        if self._book.follow(objects):
            self._unkept = True
            self._settle_until = self._monotonic() + timedelta(seconds=SETTLE_SECONDS)
            self._settled.clear()
            self._wake.set()

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the slices in force, by the last good answers."""
        return self._objects

    def problems(self) -> Problems:
        """Return the names that cannot be resolved, and the services whose emptiness is held back."""
        return self._problems

    def freshness(self) -> Freshness:
        """Say how old the oldest good answer is, and since when a name cannot be resolved."""
        states = self._book.known.values()
        answered = [each.answered for each in states if each.answered is not None]
        failing = [each.error_since for each in states if each.error_since is not None]
        error = f"{len(failing)} of {len(states)} DNS queries have no answer" if failing else ""
        return Freshness(
            last_event=self._last_event,
            last_full_read=min(answered, default=None) if len(answered) == len(states) else None,
            error=error,
            error_since=min(failing, default=None),
            held=tuple(map(str, self._book.held())),
        )

    def counts(self) -> Counts:
        """Count the names: answered, answered from memory, never answered and failing."""
        return self._book.counts()

    async def first(self) -> None:
        """Ask every name of which nothing was kept once, for the time of `patience` at the most.

        What is published before it would take the endpoints from proxies that had them from a server before.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience.total_seconds()):
                await self._resolve(lambda: None, self._book.complete)

    async def settled(self) -> None:
        """Return when something is known of every name, or one that has just come takes its time."""
        left = self._settle_until - self._monotonic()
        if self._settled.is_set() or left <= timedelta(0):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left.total_seconds()):
                await self._settled.wait()

    async def run(self, changed: Callable[[], None]) -> None:
        """Resolve until cancelled; `changed` is called after each change of slices or problems."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keeping(), name="dns answers kept")
            await self._resolve(changed, lambda: False)

    async def _resolve(self, changed: Callable[[], None], enough: Callable[[], bool]) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                now = self._monotonic()
                self._take_over(changed, now)
                if enough():
                    return
                self._ask_what_is_due(group, now)
                await self._next(now)

    def _take_over(self, changed: Callable[[], None], now: Moment) -> None:
        """Publish what the answers that have come so far come to."""
        self._book.settle(now, SERVICES_AT_ONCE)
        objects, said = self._book.objects, self._book.problems()
        moved, known = objects is not self._objects, said == self._problems
        log_new(_log, "problem", said, self._problems)
        log_gone(_log, self._problems, said)
        self._objects, self._problems = objects, said
        if self._book.complete():
            self._settled.set()
        if moved and self._begun:  # what was kept is no news
            self._unkept = True
            self._moved.set()
            self._last_event = self._clock()
            _log.info("dns endpoints changed", slices=len(objects))
        self._begun = True
        if moved or not known:
            changed()

    def _ask_what_is_due(self, group: asyncio.TaskGroup, now: Moment) -> None:
        for question in self._book.due(now, AT_ONCE - len(self._asking)):
            self._asking.add(question)
            group.create_task(self._ask(question), name=f"dns {question}")

    async def _ask(self, question: Question) -> None:
        try:
            answer = await self._resolver.ask(question)
        except asyncio.CancelledError:
            self._book.give_back(question)
            raise
        finally:
            self._asking.discard(question)
        self._book.heard(question, answer, self._monotonic(), self._clock())
        self._unkept = True
        self._wake.set()

    async def _next(self, now: Moment) -> None:
        """Wait for something to do: an answer, another wish, a question or a belief that is due."""
        if self._book.behind:
            await asyncio.sleep(0)
            return
        soonest = self._book.next_due(now, room=len(self._asking) < AT_ONCE)
        wait = None if soonest is None else max((soonest - self._monotonic()).total_seconds(), 0.001)
        with contextlib.suppress(TimeoutError):  # it is due
            async with asyncio.timeout(wait):
                await self._wake.wait()
            if self._asking:  # others may answer as well
                await asyncio.sleep(GATHER_SECONDS)
        self._wake.clear()

    async def _keeping(self) -> None:
        """Give what is known to be kept, when it is time for it."""
        try:
            while True:
                with contextlib.suppress(TimeoutError):  # the answers' dates are old
                    async with asyncio.timeout(KEEP_SECONDS):
                        await self._moved.wait()
                self._moved.clear()
                await self._kept_now()
                await asyncio.sleep(KEEP_PAUSE_SECONDS)
        finally:
            if self._unkept:
                self._keep(self._book.kept())

    async def _kept_now(self) -> None:
        if not self._unkept:
            return
        self._unkept = False
        writing = asyncio.create_task(asyncio.to_thread(self._keep, self._book.kept()), name="dns keep")
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])  # what is kept in the end comes after it
            raise
