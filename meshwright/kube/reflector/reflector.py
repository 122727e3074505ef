"""All objects of one kind, as the API server has them: listed, then watched, for as long as one likes.

A list is streamed where the server can do that, else it comes in pages. What is known stays until a whole
list says otherwise: one made anew, after a break or because the server forgot what we had seen, is compared
with what is known, and only what differs is told.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from meshwright.kube.api import PAGE, Api, selecting
from meshwright.kube.errors import ApiError, ApiUnreachable, KubeError, Nonsense, Reason, shortened
from meshwright.kube.reflector.object_cache import (
    Changes,
    Item,
    ObjectCache,
    PartialList,
    UnreadError,
    ends_list,
)
from meshwright.kube.reflector.pacing import PACING, Pacing
from meshwright.kube.reflector.statistics import Figures
from meshwright.kube.resource import Key, Raw, Resource
from meshwright.kube.streams import event
from meshwright.kube.transport import Batches
from meshwright.kube.turns import Turn

T = TypeVar("T")

_BROKE: Final = (Reason.BROKEN, Reason.INACTIVE)
"""What ends a watch without anything being wrong with what it said."""

_chance: Final = random.random  # that servers are not asked by all at once, nothing secret


class Reflector(Generic[T]):
    """The objects of `resource`, of all namespaces or of one, that `labels` and `fields` select.

    `project` makes of an object what is kept of it. `known` is what an earlier run remembered: it counts
    until the first list, which is compared with it. `clock` gives the time with its zone.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        project: Callable[[Raw], T],
        clock: Callable[[], datetime],
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        pacing: Pacing = PACING,
        known: Mapping[Key, Item[T]] | None = None,
    ) -> None:
        self.resource = resource
        self.figures = Figures()
        self.listed = asyncio.Event()
        self._api, self._namespace, self._pacing, self._clock = api, namespace, pacing, clock
        self._selecting = selecting(labels, fields)
        self._seen = ObjectCache(resource, project, known)
        self._changed: Callable[[Changes[T]], None] = _nobody
        self._streams = True  # until the server says that it does not
        self._current = False  # until what is known is a list and all events since: so a watch may go on
        self._relist_at = 0.0
        self._failures = 0

    @property
    def items(self) -> Mapping[Key, Item[T]]:
        """All that is known now."""
        return self._seen.items

    async def run(self, changed: Callable[[Mapping[Key, Item[T] | None]], None]) -> None:
        """Keep what is known current until cancelled; nothing that the server does raises out of it.

        `changed` is told what is other, None for what is gone: after each list, and after each batch of
        events. It is told nothing, {}, when only `figures` say something new: an error began or ended, or an
        object that came could not be read. It is called on the event loop, must be quick and must not raise.
        """
        self._changed = changed
        loop = asyncio.get_running_loop()
        while True:
            began, pause = loop.time(), 0.0
            try:
                await self._once()
                self._failures = 0
            except KubeError as error:
                pause = self._failed(error, steady=loop.time() - began >= self._pacing.steady)
            await asyncio.sleep(pause)

    async def _once(self) -> None:
        """List where that is due, and watch until the server ends it."""
        if not self._current or asyncio.get_running_loop().time() >= self._relist_at:
            self._current = False
            if self._streams and await self._streamed():
                return
            await self._paged()
        await self._watch({"resourceVersion": self._seen.at}, None)

    async def _streamed(self) -> bool:
        """List by a watch that first sends all there is, and go on with it; say whether the server can."""
        params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            await self._watch(params, self._seen.begin())
        except (ApiError, ApiUnreachable) as error:
            if self._current:
                raise
            match error.reason:
                case Reason.INVALID | Reason.INACTIVE:
                    self._streams = False  # it says so, or takes it for a watch as any other
                case Reason.FORBIDDEN | Reason.SERVER:
                    pass  # who may list and not watch gets as far as that goes
                case _:
                    raise
            return False
        return True

    async def _paged(self) -> None:
        """List page by page; a list whose rest the server has forgotten is begun anew, then in one piece."""
        for limit in (PAGE, PAGE, 0):
            try:
                return await self._pages(limit)
            except ApiError as error:
                if not error.is_gone or not limit:
                    raise
                self._counted(error.reason)
        return None

    async def _pages(self, limit: int) -> None:
        listing = self._seen.begin()
        objects = self._api.objects(self.resource, self._namespace, self._selecting, limit)
        async with aclosing(objects.each()) as each:
            async for raw in each:
                self._listed(listing, "ADDED", raw)
        self._complete(listing, str(objects.metadata.get("resourceVersion") or ""))

    async def _watch(self, params: Mapping[str, str], listing: PartialList[T] | None) -> None:
        """Watch until the server ends it; with a `listing`, all there is comes first."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        seconds = str(self._pacing.watch_for(_chance()))
        asked = {**self._selecting, **params, "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        watching = self._api.watch(self.resource, self._namespace, asked, self._pacing.silence)
        async with watching as batches:
            if listing is not None:
                await self._batch(await self._initial(batches, listing))
            # One that is silent from the start says nothing by which one could tell that it works.
            well = loop.call_later(self._pacing.steady, self._well)
            try:
                async for batch in batches:
                    await self._batch(iter(batch))
                    del batch  # as long as it is waited for the next, nobody has this one
            finally:
                well.cancel()
        if loop.time() - began < self._pacing.short:
            raise ApiUnreachable(f"the API server ends watches of {self.resource} at once", Reason.SHORT)

    async def _initial(self, batches: Batches, listing: PartialList[T]) -> Iterator[bytes]:
        """Take over what there is, up to the bookmark that ends it; return the lines that came with that."""
        loop, turn, silence = asyncio.get_running_loop(), Turn(), self._pacing.initial
        end = loop.time() + self._pacing.streaming
        try:
            async with asyncio.timeout(silence) as patience:
                async for batch in batches:
                    self.figures = replace(self.figures, heard=self._clock())
                    lines = iter(batch)
                    for line in lines:
                        kind, raw = event(line)
                        if kind == "BOOKMARK":
                            self._complete(listing, _ending(raw, self.resource))
                            return lines
                        if kind not in _OF_OBJECTS:
                            raise self._refusal(kind, raw)
                        self._listed(listing, kind, raw)
                        await turn.over()
                    patience.reschedule(min(loop.time() + silence, end))
        except TimeoutError as error:
            raise ApiUnreachable(
                f"the API server does not say that all {self.resource} were sent", Reason.INACTIVE
            ) from error
        raise ApiUnreachable(f"the list of {self.resource} ended before all was sent", Reason.BROKEN)

    async def _batch(self, lines: Iterator[bytes]) -> None:
        """Take over events that came at once, and tell what is other by all of them."""
        changes: Changes[T] = {}
        events, turn, unread = 0, Turn(), self.figures.unread
        try:
            for line in lines:
                kind, raw = event(line)
                if kind in _OF_OBJECTS:
                    events += 1
                    try:
                        self._seen.take(kind, raw, changes)
                    except UnreadError as error:
                        self._unread(error)
                elif kind == "BOOKMARK":
                    self._seen.bookmark(raw)
                else:
                    raise self._refusal(kind, raw)
                await turn.over()
        finally:  # what was taken over is told, whatever came after it
            self.figures = self.figures.took(events, self._clock())
            if changes or self.figures.unread != unread:
                self._changed(changes)
        self._well()

    def _listed(self, listing: PartialList[T], kind: str, raw: dict[str, Any]) -> None:
        try:
            if kind == "DELETED":
                listing.remove(raw)
            else:
                listing.add(raw)
        except UnreadError as error:
            self._unread(error)

    def _complete(self, listing: PartialList[T], version: str) -> None:
        """Put a list in the place of what is known, and tell what differs."""
        changes = listing.complete(version)
        first = not self.listed.is_set()
        relists = self.figures.relists + (not first)
        self.figures = replace(self.figures, heard=self._clock(), last_list=self._clock(), relists=relists)
        self._relist_at = asyncio.get_running_loop().time() + self._pacing.relist_after(_chance())
        self._current = bool(version)
        self.listed.set()
        if changes or first:
            self._changed(changes)

    def _failed(self, error: KubeError, *, steady: bool) -> float:
        """Take a failure over; return how long to wait until the next attempt."""
        self._counted(error.reason)
        if steady:
            self._failures = 0
        if self._current and steady and error.reason in _BROKE:
            return 0.0  # it had worked: on from where it broke
        self._current = False
        self._failures += 1
        if error.reason is Reason.GONE and self._failures == 1:
            return 0.0  # a list is all that it takes
        before = self.figures
        self.figures = before.erring(error, self._clock())
        if before.error != self.figures.error:
            self._changed({})
        asked = error.retry_after if isinstance(error, ApiError) else None
        return self._pacing.pause(self._failures, _chance(), asked)

    def _well(self) -> None:
        """Say that what is known is current, if that was not so."""
        before, self.figures = self.figures, self.figures.well()
        if before is not self.figures:
            self._changed({})

    def _counted(self, reason: Reason) -> None:
        self.figures = self.figures.failed(reason)

    def _unread(self, error: UnreadError) -> None:
        self.figures = replace(self.figures.failed(Reason.OBJECT), unread=str(error))

    def _refusal(self, kind: str, raw: Raw) -> KubeError:
        """Return the error that a watch tells of."""
        if kind != "ERROR":
            return Nonsense(f"a watch of {self.resource} sent an event of type {shortened(kind)!r}")
        name = self.resource.name
        return ApiError.of(raw, verb="watch", resource=name, what=name, named=False)


_OF_OBJECTS: Final = ("ADDED", "MODIFIED", "DELETED")


def _ending(raw: Raw, resource: Resource) -> str:
    """Return the version of a list that a bookmark ends; a server that knows no such lists sends others."""
    version = ends_list(raw)
    if version is None:
        raise ApiUnreachable(f"the API server does not stream lists of {resource}", Reason.INACTIVE)
    return version


def _nobody(changes: Mapping[Any, Any]) -> None:
    """Hear of changes before anybody wants to."""
