"""A cluster as a source: the objects that its API server has, watched."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from meshwright.kube.api import Api
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.pacing import PACING, Pacing
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems, log_gone, log_new
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness, SourceError
from meshwright.providers.guard import HOLD
from meshwright.providers.kubernetes import status as said
from meshwright.providers.kubernetes.ages import Ages
from meshwright.providers.kubernetes.book import Book, Changes
from meshwright.providers.kubernetes.identity import ClusterIdentifier
from meshwright.providers.kubernetes.last_state import SavedState, fits
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.kubernetes.status import NAME
from meshwright.providers.kubernetes.watches import AGAIN, Watches
from meshwright.providers.moments import Moment, monotonic

PATIENCE: Final = timedelta(seconds=30)
"""How long the first answers are waited for if nothing else is said."""
DISCOVER: Final = timedelta(seconds=30)
"""How often it is asked which kinds there are."""
KEEP_SECONDS: Final = 60.0
"""How long nothing is written after something was."""
AT_ONCE: Final = 64 * 1024
"""Characters of objects that are read on the event loop; more are read in a thread."""

_log = structlog.get_logger("providers.kubernetes.source")


class KubernetesSource:
    """What the API server of a cluster has, as far as it is in the `scope`.

    `api` is open as long as the source is at work. `clock` gives the time with its zone; `hold` is how long
    it takes to believe a list that is empty where there were objects, and that a kind is gone; `patience` is
    how long `first` waits; `discover` is how often it is asked which kinds there are;
    `pacing` is that of the watches.

    It begins with what was `kept` by the one before, if that was of the same cluster as far as that is
    known; with nothing once the cluster says that it is another one. `keep` is given what the next one may
    begin with, at most once a minute, and in the end. It is called in a thread (in the end by the event loop
    itself), never twice at a time, and must not raise. Without it, nobody is asked which cluster it is.
    """

    name = NAME

    def __init__(
        self,
        api: Api,
        scope: Scope,
        clock: Callable[[], datetime],
        *,
        hold: timedelta = HOLD,
        patience: timedelta = PATIENCE,
        discover: timedelta = DISCOVER,
        pacing: Pacing = PACING,
        kept: SavedState | None = None,
        keep: Callable[[SavedState], None] | None = None,
        monotonic: Callable[[], Moment] = monotonic,
    ) -> None:
        self._cluster = api.name
        self._identifying = ClusterIdentifier(api, again=AGAIN, refused=discover)
        self._kept = (
            kept if kept is not None and kept.cluster.may_be(self._identifying.known) else SavedState()
        )
        self._clock = clock
        self._patience = patience
        self._keep = keep
        self._watching = partial(
            Watches,
            api,
            scope,
            clock,
            self._heard,
            hold=hold,
            discover=discover,
            monotonic=monotonic,
            pacing=pacing,
        )
        self._watches = self._watching(known=self._kept.watches)
        self._ages = Ages(self._watches)
        self._book = Book(api.name, scope)
        self._pending: dict[ObjectKey, Item[str] | None] = dict(self._watches.known())
        self._problems: Problems = ()
        self._own: Problems = ()
        self._counted: tuple[object, object, Counts] | None = None
        self._last_event: datetime | None = None
        self._has_begun = self._is_unkept = self._is_too_large = False
        self._woken = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects in force; the last good form where the newest is bad."""
        return self._book.state.objects()

    def problems(self) -> Problems:
        """Return what is wrong with objects, and which kinds cannot be read and why."""
        return self._problems

    def freshness(self) -> Freshness:
        """Say how old the answer is, as a whole and of each kind."""
        return self._ages.freshness(self._last_event)

    def counts(self) -> Counts:
        """Count the objects."""
        state, problems = self._book.state, self._problems
        if self._counted is None or self._counted[0] is not state or self._counted[1] is not problems:
            self._counted = (state, problems, Counts.of(state.objects(), state.stale, problems))
        return self._counted[2]

    async def first(self) -> None:
        """Return when all that can be had soon is there, or has been waited for; what is missing is said.

        Raises SourceError where nothing is there, nor was kept.
        """
        self._begin()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience.total_seconds()):
                    await self._settled()
                    if self._is_another():
                        await self._anew()
            if not self._watches.is_any_known():
                error = self.freshness().error or f"no answer within {self._patience.total_seconds():g} s"
                raise SourceError(f"cannot read the cluster {self._cluster}: {error}")
            await self._take()
        except BaseException:
            await self.stop()  # there will be no `run` that ends it
            raise
        self._has_begun = self._is_unkept = True

    async def _settled(self) -> None:
        while not (self._watches.is_settled() and (self._keep is None or self._identifying.has_asked)):
            await self._woken.wait()
            self._woken.clear()
            self._look_after()

    def _is_another(self) -> bool:
        """Say whether what was kept is in use, and of another cluster than the one that answers."""
        return bool(self._kept.watches) and not self._kept.cluster.may_be(self._identifying.known)

    async def _anew(self) -> None:
        """Begin with nothing, and put what there is in the place of all that was kept."""
        _log.warning("saved objects belong to another cluster and are discarded", cluster=self._cluster)
        begun, self._has_begun = self._has_begun, False  # what is not whole yet is not kept
        self._kept, self._watches = SavedState(), self._watching()
        self._ages = Ages(self._watches)
        await self.stop()
        self._pending = {}
        self._begin()
        await self._settled()
        self._book, self._has_begun = Book(self._cluster, self._book.scope), begun

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch until cancelled; `changed` is called after each change of objects, problems or errors."""
        self._begin()
        try:
            async with asyncio.TaskGroup() as group:
                if self._keep is not None:
                    group.create_task(self._keeping(self._keep), name="kubernetes answer kept")
                while True:
                    if is_another := self._is_another():
                        await self._anew()
                    if await self._take() or is_another:
                        changed()
                    await self._woken.wait()
                    self._woken.clear()
                    self._look_after()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """End what `first` has begun, where there is to be no `run`."""
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)  # `_look_after` has raised what there was

    def _begin(self) -> None:
        if self._work is None:
            self._work = asyncio.create_task(self._at_work(), name="kubernetes watches")
            self._work.add_done_callback(lambda _: self._woken.set())

    async def _at_work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watches.run(), name="kubernetes watches")
            if self._keep is not None:
                group.create_task(self._identifying.run(self._woken.set), name="kubernetes cluster's UID")

    def _look_after(self) -> None:
        """Raise what ended the watches: nothing but an error that nobody expected."""
        if self._work is not None and self._work.done():
            self._work.result()

    def _heard(self, changes: Changes) -> None:
        self._pending.update(changes)
        self._woken.set()

    async def _take(self) -> bool:
        """Take over what has been heard; say whether anybody must be told."""
        before, changes = self._book, self._pending
        self._pending = {}
        if changes:
            told = before.told(changes)
            if moved := told.moved(before):
                changes = {**self._watches.items_in(moved), **changes}
            if sum(len(item.body) for item in changes.values() if item is not None) > AT_ONCE:
                self._book = await asyncio.to_thread(told.taken, changes)
            else:
                self._book = told.taken(changes)
            self._is_unkept = self._is_unkept or self._has_begun
        is_other = self._book.state is not before.state
        if is_other and self._has_begun:
            self._last_event = self._clock()
        return self._say(before) or is_other

    def _say(self, before: Book) -> bool:
        """Say what is wrong now; say whether that is anything else than it was."""
        own = said.problems(self._watches, self._identifying.refusal)
        of_objects = self._book.state.problems()
        if own == self._own and of_objects is before.state.problems():
            return False
        was, self._own, self._problems = self._problems, own, (*own, *of_objects)
        log_new(_log, "kubernetes problem", self._problems, was)
        log_gone(_log, was, self._problems)
        return was != self._problems

    async def _keeping(self, keep: Callable[[SavedState], None]) -> None:
        """Give what is known to be kept, when it is time for it."""
        try:
            while True:
                await asyncio.sleep(KEEP_SECONDS)
                if (kept := self._unkept()) is not None:
                    writing = asyncio.create_task(asyncio.to_thread(keep, kept), name="kubernetes keep")
                    try:
                        await asyncio.shield(writing)
                    except asyncio.CancelledError:
                        await asyncio.wait([writing])  # what is kept in the end comes after it
                        raise
        finally:
            self._is_unkept = self._has_begun  # what has not changed is true until now
            if (kept := self._unkept()) is not None:
                keep(kept)

    def _unkept(self) -> SavedState | None:
        """Return what is to be kept, None where that has been, or would be too large."""
        if not self._is_unkept or self._is_another():
            return None
        known = self._identifying.known
        cluster = replace(known, uid=known.uid or self._kept.cluster.uid)
        kept, self._is_unkept = SavedState(cluster, self._watches.kept()), False
        if fits(kept):
            self._is_too_large = False
            return kept
        if not self._is_too_large:
            _log.warning("cluster objects are too large to be saved; a restart needs the API server")
        self._is_too_large = True
        return None
