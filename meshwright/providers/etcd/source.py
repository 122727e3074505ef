"""The objects in etcd as a source: listed once, then followed."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from meshwright.etcd.client import Client
from meshwright.etcd.feed import Difference, Feed
from meshwright.etcd.values import KeyValue
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity, log_gone, log_new, ordered
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness, SourceError
from meshwright.providers.etcd.book import EtcdObjects
from meshwright.providers.etcd.last_objects import fits
from meshwright.providers.etcd.manifest import SOURCE
from meshwright.providers.etcd.names import ObjectNames
from meshwright.providers.guard import HOLD, GuardedValue, guard
from meshwright.providers.moments import Moment, monotonic
from meshwright.specs.codes import Code

PATIENCE: Final = timedelta(seconds=30)
"""Default time for which the first list is awaited."""

KEEP_SECONDS: Final = 60.0
"""Seconds between two saves."""

AT_ONCE: Final = 64 * 1024
"""Maximum bytes of manifests parsed on the event loop; more are parsed in a thread."""

_LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at an empty answer that is held back."""

_log = structlog.get_logger("providers.etcd.source")


class EtcdSource:
    """The objects in the keys of `names`. The source enters the `connection` of the client, and leaves it.

    `clock` returns the time with its zone. `hold` is the delay before an empty answer after one with objects
    is accepted. `patience` is the time limit of `first`.

    If etcd does not answer within `patience`, the source begins with the keys `kept` from a previous run.
    `keep` receives all keys for the next run, at most once a minute and at the end. It is called in a thread
    (at the end on the event loop), and must not raise.
    """

    name = SOURCE

    def __init__(
        self,
        client: Client,
        connection: AbstractAsyncContextManager[object],
        names: ObjectNames,
        clock: Callable[[], datetime],
        *,
        hold: timedelta = HOLD,
        patience: timedelta = PATIENCE,
        kept: tuple[KeyValue, ...] = (),
        keep: Callable[[tuple[KeyValue, ...]], None] = lambda _: None,
        monotonic: Callable[[], Moment] = monotonic,
    ) -> None:
        self._client, self._connection = client, connection
        self._names, self._clock = names, clock
        self._hold, self._patience, self._monotonic = hold, patience, monotonic
        self._kept, self._keep = kept, keep
        self._items: dict[bytes, KeyValue] = {}
        self._is_unkept = False
        self._pending: dict[bytes, KeyValue | None] = {}
        self._woken = asyncio.Event()
        self._is_listed = False
        self._latest = EtcdObjects()
        self._in_force = GuardedValue(self._latest.objects())
        self._state = self._latest
        self._freshness = Freshness()
        self._problems: Problems = ()
        self._feeding: asyncio.Task[None] | None = None

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects that apply, in their last good form if the newest one is bad."""
        return self._state.objects()

    def problems(self) -> Problems:
        """Return the problems of the values, and of the source itself."""
        return self._problems

    def freshness(self) -> Freshness:
        """Return the age of the objects, and the reason if they may be outdated."""
        return self._freshness

    def counts(self) -> Counts:
        """Return the numbers of objects and problems."""
        return Counts.count(self.objects(), self._state.stale, self._problems)

    async def first(self) -> None:
        """Wait for the first list, for `patience` at most; without it begin with the objects of before.

        Raises SourceError without either.
        """
        await self._begin()
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                while not self._is_listed:
                    await self._wait()
        except TimeoutError:
            # A list that has arrived in the same turn of the event loop counts: it is delivered only once.
            if not self._is_listed:
                error = self._freshness.error or f"timed out after {self._patience.total_seconds():g} s"
                if not self._kept:
                    await self._end()
                    raise SourceError(f"the objects in etcd cannot be listed: {error}") from None
                self._note(error)
                self._pending |= {item.key: item for item in self._kept}
        except BaseException:
            await self._end()  # without `run`, the started task would never end
            raise
        await self._take()

    async def run(self, changed: Callable[[], None]) -> None:
        """Follow the keys until cancelled; call `changed` after a change of objects, problems or errors."""
        await self._begin()
        keeping = asyncio.create_task(self._keeping(), name="objects in etcd kept")
        try:
            while True:
                if await self._take():
                    changed()
                await self._wait()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            if (items := self._unkept()) is not None:
                self._keep(items)
            await self._end()

    async def _keeping(self) -> None:
        """Save the keys every KEEP_SECONDS, if they have changed."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            if (items := self._unkept()) is None:
                continue
            writing = asyncio.create_task(asyncio.to_thread(self._keep, items), name="etcd keep")
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait([writing])  # the last save must come after this one
                raise

    def _unkept(self) -> tuple[KeyValue, ...] | None:
        """Return the keys to save; None if they are saved already, too large, or gone by mistake perhaps."""
        items = tuple(self._items.values())
        if not self._is_unkept or self._in_force.held_since is not None or not fits(items):
            return None
        self._is_unkept = False
        return items

    async def _begin(self) -> None:
        if self._feeding is None:
            await self._connection.__aenter__()
            feed = Feed(self._client, self._names.span, self._receive, note=self._note)
            self._feeding = asyncio.create_task(feed.run(), name="objects in etcd")
            self._feeding.add_done_callback(lambda _: self._woken.set())

    async def _end(self) -> None:
        feeding, self._feeding = self._feeding, None
        if feeding is not None:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)  # errors have been raised in `_wait`
            await self._connection.__aexit__(None, None, None)

    async def _wait(self) -> None:
        """Wait for news, or for the next look at a held answer; raise the error that has ended the feed."""
        held = self._in_force.held_since is not None
        try:
            async with asyncio.timeout(_LOOK_SECONDS if held else None):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()
        if self._feeding is not None and self._feeding.done():
            self._feeding.result()

    def _receive(self, difference: Difference) -> None:
        if not self._is_listed:  # keys of an earlier run that are gone
            self._pending |= dict.fromkeys([*self._items, *self._pending])
        self._pending |= {item.key: item for item in difference.items}
        self._pending |= dict.fromkeys(difference.removed)
        self._is_listed = True
        self._woken.set()

    def _note(self, error: str) -> None:
        """Note the error of the feed, empty for a sign of life."""
        now, before = self._clock(), self._freshness
        if error:
            self._freshness = replace(before, error=error, error_since=before.error_since or now)
        else:
            self._freshness = replace(before, error="", error_since=None, last_full_read=now)
        if error != before.error:
            self._woken.set()

    async def _take(self) -> bool:
        """Apply the pending changes; return whether objects or problems have changed."""
        changes, self._pending = self._pending, {}
        items = [item for item in changes.values() if item is not None]
        removed = [key for key, item in changes.items() if item is None]
        self._items |= {item.key: item for item in items}
        for key in removed:
            self._items.pop(key, None)
        self._is_unkept = self._is_unkept or bool(changes)
        if sum(len(item.value) for item in items) > AT_ONCE:
            self._latest = await asyncio.to_thread(self._latest.taken, self._names, items, removed)
        else:
            self._latest = self._latest.taken(self._names, items, removed)
        before = self._state
        had = GuardedValue(before.objects(), self._in_force.held_since)
        self._in_force = guard(had, self._latest.objects(), self._monotonic(), self._hold)
        is_held = self._in_force.held_since is not None
        if not is_held:
            self._state = self._latest
        is_other = self._state is not before
        event = self._clock() if is_other else self._freshness.last_event
        held = ("all objects",) if is_held else ()
        self._freshness = replace(self._freshness, last_event=event, held=held)
        return self._log_problems(is_held=is_held) or is_other

    def _log_problems(self, *, is_held: bool) -> bool:
        """Collect the problems, log the new and the resolved ones; return whether they have changed."""
        own = [_held()] if is_held else []
        if error := self._freshness.error:
            own.append(_unreadable(error))
        was, self._problems = self._problems, ordered((*own, *self._state.problems()))
        log_new(_log, "problem in etcd", self._problems, was)
        log_gone(_log, was, self._problems)
        return was != self._problems


def _unreadable(error: str) -> Problem:
    expected = f"{error}; the objects read before stay in force"
    return Problem(
        code=str(Code.ETCD_UNREADABLE), severity=Severity.ERROR, origin=FromSource(SOURCE), expected=expected
    )


def _held() -> Problem:
    expected = (
        "etcd does not have objects any more; the objects read before stay in force for "
        "empty_answer_hold_seconds, in case they were deleted by mistake"
    )
    return Problem(
        code=str(Code.EMPTY_HELD), severity=Severity.WARNING, origin=FromSource(SOURCE), expected=expected
    )
