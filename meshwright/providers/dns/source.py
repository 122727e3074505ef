"""Source of endpoints from the DNS: resolves the names in Services, and keeps the answers current."""

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
"""Default time for which the first answers are awaited."""

AT_ONCE: Final = 32
"""Maximum number of simultaneous questions."""

SERVICES_AT_ONCE: Final = 64
"""Number of services updated at a time, before other tasks run on the event loop."""

GATHER_SECONDS: Final = 0.02
"""Seconds in which further answers are collected while questions are outstanding, to update once for all."""

SETTLE_SECONDS: Final = 0.1
"""Maximum seconds of waiting for a new name, so that its Service is not published without endpoints."""

KEEP_SECONDS: Final = 60.0
"""Maximum age in seconds of the saved answers if only the times of answers have changed."""

KEEP_PAUSE_SECONDS: Final = 1.0
"""Minimum seconds between two saves."""

_log = structlog.get_logger("providers.dns.source")


class DnsSource:
    """EndpointSlices from the DNS, for the Services given to `follow`.

    `clock` returns the time with its zone. `hold` is the time for which an answer without addresses is held
    back from a service with addresses, and `patience` is the time limit of `first`. Queries begin with
    `first` or `run`.

    The source begins with the answers `kept` from a previous run. `keep` receives the answers for the next
    run: soon after a change of slices, otherwise once a minute, and at the end. `keep` is called in a thread
    (at the end on the event loop), never twice at the same time, and must not raise.
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
        """Resolve the DNS names of these Services from now on, and stop for removed Services."""
        if self._book.follow(objects):
            self._unkept = True
            self._settle_until = self._monotonic() + timedelta(seconds=SETTLE_SECONDS)
            self._settled.clear()
            self._wake.set()

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the endpoint slices that apply, from the last good DNS answers."""
        return self._objects

    def problems(self) -> Problems:
        """Return a problem for each unresolved DNS name, and for each empty answer not yet accepted."""
        return self._problems

    def freshness(self) -> Freshness:
        """Return the age of the oldest good answer, and since when a name cannot be resolved."""
        states = self._book.known.values()
        answered = [state.answered for state in states if state.answered is not None]
        failing = [state.error_since for state in states if state.error_since is not None]
        error = f"{len(failing)} of {len(states)} DNS queries were not answered" if failing else ""
        return Freshness(
            last_event=self._last_event,
            last_full_read=min(answered, default=None) if len(answered) == len(states) else None,
            error=error,
            error_since=min(failing, default=None),
            held=tuple(map(str, self._book.held_services())),
        )

    def counts(self) -> Counts:
        """Return the numbers of DNS names: answered, answered from memory, and never answered."""
        return self._book.counts()

    async def first(self) -> None:
        """Query each name without a saved answer once, for the time of `patience` at most.

        The server must not publish earlier, because proxies that had endpoints from a previous server would
        lose them.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience.total_seconds()):
                await self._resolve(lambda: None, self._book.complete)

    async def settled(self) -> None:
        """Return when every name has an answer or failure, or a new name has taken SETTLE_SECONDS."""
        left = self._settle_until - self._monotonic()
        if self._settled.is_set() or left <= timedelta(0):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left.total_seconds()):
                await self._settled.wait()

    async def run(self, changed: Callable[[], None]) -> None:
        """Resolve the names until cancelled; call `changed` after each change of slices or problems."""
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
                self._resolve_due_names(group, now)
                await self._next(now)

    def _take_over(self, changed: Callable[[], None], now: Moment) -> None:
        """Publish the slices and problems that follow from the DNS answers so far."""
        self._book.settle(now, SERVICES_AT_ONCE)
        objects, problems = self._book.objects, self._book.problems()
        moved, known = objects is not self._objects, problems == self._problems
        log_new(_log, "problem", problems, self._problems)
        log_gone(_log, self._problems, problems)
        self._objects, self._problems = objects, problems
        if self._book.complete():
            self._settled.set()
        if moved and self._begun:  # the saved answers at the start are not a change
            self._unkept = True
            self._moved.set()
            self._last_event = self._clock()
            _log.info("dns endpoints changed", slices=len(objects))
        self._begun = True
        if moved or not known:
            changed()

    def _resolve_due_names(self, group: asyncio.TaskGroup, now: Moment) -> None:
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
        self._book.accept(question, answer, self._monotonic(), self._clock())
        self._unkept = True
        self._wake.set()

    async def _next(self, now: Moment) -> None:
        """Wait for the next work: an answer, a change of Services, a question or the end of a hold."""
        if self._book.behind:
            await asyncio.sleep(0)
            return
        soonest = self._book.next_due(now, room=len(self._asking) < AT_ONCE)
        wait = None if soonest is None else max((soonest - self._monotonic()).total_seconds(), 0.001)
        with contextlib.suppress(TimeoutError):  # the time is up
            async with asyncio.timeout(wait):
                await self._wake.wait()
            if self._asking:  # further answers may follow
                await asyncio.sleep(GATHER_SECONDS)
        self._wake.clear()

    async def _keeping(self) -> None:
        """Save the DNS answers after each change of slices, every KEEP_SECONDS, and at the end."""
        try:
            while True:
                with contextlib.suppress(TimeoutError):  # save the new times of the answers
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
            await asyncio.wait([writing])  # the last save must come after this one
            raise
