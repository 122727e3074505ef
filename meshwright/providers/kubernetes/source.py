"""A cluster as a source: the objects of its API server, watched for changes."""

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
from meshwright.mesh.workload import WorkloadKey
from meshwright.providers.contract import Counts, Freshness, SourceError
from meshwright.providers.guard import HOLD
from meshwright.providers.kubernetes import status as said
from meshwright.providers.kubernetes.ages import Ages
from meshwright.providers.kubernetes.book import Book, Changes
from meshwright.providers.kubernetes.identity import ClusterIdentifier
from meshwright.providers.kubernetes.known_pods import may_have_pod
from meshwright.providers.kubernetes.last_state import SavedState, fits
from meshwright.providers.kubernetes.named_objects import NAMED_IN, objects_named
from meshwright.providers.kubernetes.named_watches import NamedWatches
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.kubernetes.status import NAME
from meshwright.providers.kubernetes.watches import AGAIN, Watches
from meshwright.providers.moments import Moment, monotonic

PATIENCE: Final = timedelta(seconds=30)
"""Default time for which the first answers are awaited."""
DISCOVER: Final = timedelta(seconds=30)
"""Default time between two discoveries of the served kinds."""
KEEP_SECONDS: Final = 60.0
"""Seconds between two saves."""
AT_ONCE: Final = 64 * 1024
"""Maximum characters of objects parsed on the event loop; more are parsed in a thread."""

_log = structlog.get_logger("providers.kubernetes.source")


class KubernetesSource:
    """The objects of a cluster's API server within `scope`.

    `api` must be open as long as the source runs. `clock` returns the time with its zone. `hold` is the delay
    before an empty list after one with objects, or the removal of a kind, is accepted. `patience` is the time
    limit of `first`, and `discover` the time between discoveries; `pacing` is for the watches.

    Secrets and ConfigMaps that gateways name are watched by name, once the gateways are known.

    The source begins with the state `kept` from a previous run if it may be of the same cluster, and discards
    this state once the cluster is known to be another one. `keep` receives the state for the next run, at
    most once a minute and at the end. `keep` is called in a thread (at the end on the event loop), never
    twice at the same time, and must not raise. Without `keep` the cluster's UID is not requested.
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
            self._note_changes,
            hold=hold,
            discover=discover,
            monotonic=monotonic,
            pacing=pacing,
        )
        self._watches = self._watching(known=self._kept.watches)
        self._watching_named = partial(NamedWatches, api, clock, self._note_changes, pacing=pacing)
        self._named = self._watching_named()
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
        """Return the objects that apply, in their last good form if the newest one is bad."""
        return self._book.state.objects()

    def problems(self) -> Problems:
        """Return the problems of the cluster's objects, and one for each unreadable kind."""
        return self._problems

    def freshness(self) -> Freshness:
        """Return the age of the cluster's objects, as a whole and for each kind."""
        return self._ages.freshness(self._last_event)

    def counts(self) -> Counts:
        """Return the numbers of the cluster's objects and problems."""
        state, problems = self._book.state, self._problems
        if self._counted is None or self._counted[0] is not state or self._counted[1] is not problems:
            self._counted = (state, problems, Counts.count(state.objects(), state.stale, problems))
        return self._counted[2]

    def may_have_pod(self, pod: WorkloadKey, uid: str) -> bool:
        """Return whether a Pod with this name and UID runs, or may run, in the mesh or outside it."""
        return may_have_pod(self._watches.at, pod, uid)

    async def first(self) -> None:
        """Wait for the first lists, for `patience` at most; kinds that are missing then become problems.

        Secrets and ConfigMaps are awaited after the gateways that name them, for `patience` at most as well.
        Raises SourceError without any objects, neither listed nor saved.
        """
        self._begin()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience.total_seconds()):
                    await self._settled(self._are_kinds_settled)
                    if self._is_another():
                        await self._anew()
            if not self._watches.is_any_known():
                error = self.freshness().error or f"timed out after {self._patience.total_seconds():g} s"
                raise SourceError(f"cannot read the cluster {self._cluster}: {error}")
            await self._take()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience.total_seconds()):
                    await self._settled(self._named.is_settled)
            await self._take()
        except BaseException:
            await self.stop()  # without `run`, the started tasks would never end
            raise
        self._has_begun = self._is_unkept = True

    def _are_kinds_settled(self) -> bool:
        return self._watches.is_settled() and (self._keep is None or self._identifying.has_result)

    async def _settled(self, is_settled: Callable[[], bool]) -> None:
        while not is_settled():
            await self._woken.wait()
            self._woken.clear()
            self._look_after()

    def _is_another(self) -> bool:
        """Return whether the saved state is in use, and of another cluster than the one that answers."""
        return bool(self._kept.watches) and not self._kept.cluster.may_be(self._identifying.known)

    async def _anew(self) -> None:
        """Start again without the saved state, and replace all its objects by the ones of this cluster."""
        _log.warning("saved objects belong to another cluster and are discarded", cluster=self._cluster)
        begun, self._has_begun = self._has_begun, False  # an incomplete state must not be saved
        self._kept, self._watches, self._named = SavedState(), self._watching(), self._watching_named()
        self._ages = Ages(self._watches)
        await self.stop()
        self._pending = {}
        self._begin()
        await self._settled(self._are_kinds_settled)
        self._book, self._has_begun = Book(self._cluster, self._book.scope), begun

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch the cluster until cancelled; call `changed` after a change of objects, problems or errors."""
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
        """Stop the tasks that `first` has started, if `run` will not be called."""
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)  # errors have been raised in `_look_after`

    def _begin(self) -> None:
        if self._work is None:
            self._work = asyncio.create_task(self._at_work(), name="kubernetes watches")
            self._work.add_done_callback(lambda _: self._woken.set())

    async def _at_work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watches.run(), name="kubernetes watches")
            group.create_task(self._named.run(), name="kubernetes watches by name")
            if self._keep is not None:
                group.create_task(self._identifying.run(self._woken.set), name="kubernetes cluster's UID")

    def _look_after(self) -> None:
        """Raise the unexpected error that has ended the cluster's watches, if any."""
        if self._work is not None and self._work.done():
            self._work.result()

    def _note_changes(self, changes: Changes) -> None:
        self._pending.update(changes)
        self._woken.set()

    async def _take(self) -> bool:
        """Apply the pending changes of objects; return whether objects or problems have changed."""
        before, changes = self._book, self._pending
        self._pending = {}
        if changes:
            book = before.with_namespaces(changes)
            if moved := book.moved(before):
                known = self._watches.items_in(moved), self._named.items_in(moved)
                changes = {**known[0], **known[1], **changes}
            if sum(len(item.body) for item in changes.values() if item is not None) > AT_ONCE:
                self._book = await asyncio.to_thread(book.taken, changes)
            else:
                self._book = book.taken(changes)
            self._is_unkept = self._is_unkept or self._has_begun
            if any(key.kind in NAMED_IN for key in changes):
                self._named.want(objects_named(self._book.state.objects()))
        is_other = self._book.state is not before.state
        if is_other and self._has_begun:
            self._last_event = self._clock()
        return self._log_problems(before) or is_other

    def _log_problems(self, before: Book) -> bool:
        """Collect the problems, log the new and the resolved ones; return whether they have changed."""
        own = said.problems(self._watches, self._named, self._identifying.refusal)
        of_objects = self._book.state.problems()
        if own == self._own and of_objects is before.state.problems():
            return False
        was, self._own, self._problems = self._problems, own, (*own, *of_objects)
        log_new(_log, "kubernetes problem", self._problems, was)
        log_gone(_log, was, self._problems)
        return was != self._problems

    async def _keeping(self, keep: Callable[[SavedState], None]) -> None:
        """Save the cluster's objects every KEEP_SECONDS if changed, and at the end."""
        try:
            while True:
                await asyncio.sleep(KEEP_SECONDS)
                if (kept := self._unkept()) is not None:
                    writing = asyncio.create_task(asyncio.to_thread(keep, kept), name="kubernetes keep")
                    try:
                        await asyncio.shield(writing)
                    except asyncio.CancelledError:
                        await asyncio.wait([writing])  # the last save must come after this one
                        raise
        finally:
            self._is_unkept = self._has_begun  # refresh the times: true until now
            if (kept := self._unkept()) is not None:
                keep(kept)

    def _unkept(self) -> SavedState | None:
        """Return the cluster's objects to save; None if already saved, too many, or of another cluster."""
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
