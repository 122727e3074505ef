"""Reflector of all objects of one kind: listed, then watched, until cancelled.

A list is streamed by the watch itself if the server supports streaming, else read page by page. Known objects
stay until a complete list replaces them. A later list, after a break or because the server has forgotten the
resourceVersion, is compared with the known objects, and only differences are reported. Therefore an outage of
the API server never removes anything from the mesh.
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
"""Ends of a watch without any doubt about its earlier events."""

_chance: Final = random.random  # jitter, not security


class Reflector(Generic[T]):
    """The objects of `resource`, in all namespaces or one, selected by `labels` and `fields`.

    `project` reduces an object to the part to keep. `known` are objects from an earlier run; they are used
    until the first list, which is compared with them. `clock` returns the time with a zone.
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
        self._changed: Callable[[Changes[T]], None] = _ignore_changes
        self._streams = True  # until the server refuses a streaming list
        self._current = False  # True if a watch may continue from `at`
        self._relist_at = 0.0
        self._failures = 0

    @property
    def items(self) -> Mapping[Key, Item[T]]:
        """Return all known objects."""
        return self._seen.items

    async def run(self, changed: Callable[[Mapping[Key, Item[T] | None]], None]) -> None:
        """Keep the objects current until cancelled; faults of the server are never raised.

        `changed` receives the changed objects (None for a deleted one) after each list and each batch of
        events, and {} if only `figures` have news: an error began or ended, or an object was unreadable.
        `changed` is called on the event loop, must be quick and must not raise.
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
        """List the objects if due, then watch them until the server ends the watch."""
        if not self._current or asyncio.get_running_loop().time() >= self._relist_at:
            self._current = False
            if self._streams and await self._streamed():
                return
            await self._paged()
        await self._watch({"resourceVersion": self._seen.at}, None)

    async def _streamed(self) -> bool:
        """List by a watch that sends all objects first, and continue the watch.

        Return whether the server supports streaming lists.
        """
        params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            await self._watch(params, self._seen.begin())
        except (ApiError, ApiUnreachable) as error:
            if self._current:
                raise
            match error.reason:
                case Reason.INVALID | Reason.INACTIVE:
                    self._streams = False  # refused, or treated as a plain watch
                case Reason.FORBIDDEN | Reason.SERVER:
                    pass  # a role with `list` but without `watch` still gets a paged list
                case _:
                    raise
            return False
        return True

    async def _paged(self) -> None:
        """List page by page; after an expired continuation start again, and the last time in one page."""
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
        async with aclosing(objects.stream_all()) as item:
            async for raw in item:
                self._listed(listing, "ADDED", raw)
        self._complete(listing, str(objects.metadata.get("resourceVersion") or ""))

    async def _watch(self, params: Mapping[str, str], listing: PartialList[T] | None) -> None:
        """Watch until the server ends the watch; with a `listing` the watch begins with all objects."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        seconds = str(self._pacing.watch_for(_chance()))
        asked = {**self._selecting, **params, "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        watching = self._api.watch(self.resource, self._namespace, asked, self._pacing.silence)
        async with watching as batches:
            if listing is not None:
                await self._batch(await self._initial(batches, listing))
            # A quiet watch sends no event that would prove that it works, so its age has to.
            well = loop.call_later(self._pacing.steady, self._well)
            try:
                async for batch in batches:
                    await self._batch(iter(batch))
                    del batch  # free it while waiting for the next
            finally:
                well.cancel()
        if loop.time() - began < self._pacing.short:
            raise ApiUnreachable(f"the API server ends watches of {self.resource} immediately", Reason.SHORT)

    async def _initial(self, batches: Batches, listing: PartialList[T]) -> Iterator[bytes]:
        """Read the initial objects up to the bookmark at their end.

        Return the remaining lines of the last batch.
        """
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
                f"the API server does not mark the end of the list of {self.resource}", Reason.INACTIVE
            ) from error
        raise ApiUnreachable(f"the list of {self.resource} ended before it was complete", Reason.BROKEN)

    async def _batch(self, lines: Iterator[bytes]) -> None:
        """Apply a batch of watch events, and report the changes of all of them at once."""
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
        finally:  # applied events are reported even if a later line is faulty
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
        """Replace the known objects by a complete list, and report the differences to `changed`."""
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
        """Record a failed list or watch; return the seconds until the next attempt."""
        self._counted(error.reason)
        if steady:
            self._failures = 0
        if self._current and steady and error.reason in _BROKE:
            return 0.0  # the watch worked, so continue from its last event
        self._current = False
        self._failures += 1
        if error.reason is Reason.GONE and self._failures == 1:
            return 0.0  # an expired version needs a new list, not a pause
        before = self.figures
        self.figures = before.erring(error, self._clock())
        if before.error != self.figures.error:
            self._changed({})
        asked = error.retry_after if isinstance(error, ApiError) else None
        return self._pacing.pause(self._failures, _chance(), asked)

    def _well(self) -> None:
        """Record that the objects are current, and report the end of an error."""
        before, self.figures = self.figures, self.figures.well()
        if before is not self.figures:
            self._changed({})

    def _counted(self, reason: Reason) -> None:
        self.figures = self.figures.failed(reason)

    def _unread(self, error: UnreadError) -> None:
        self.figures = replace(self.figures.failed(Reason.OBJECT), unread=str(error))

    def _refusal(self, kind: str, raw: Raw) -> KubeError:
        """Return the error for a watch event without an object, such as an event of type ERROR."""
        if kind != "ERROR":
            return Nonsense(f"a watch of {self.resource} sent an event of type {shortened(kind)!r}")
        name = self.resource.name
        return ApiError.from_status(raw, verb="watch", resource=name, object_text=name, named=False)


_OF_OBJECTS: Final = ("ADDED", "MODIFIED", "DELETED")


def _ending(raw: Raw, resource: Resource) -> str:
    """Return the version of the list before a bookmark.

    Servers without streaming lists send other bookmarks.
    """
    version = ends_list(raw)
    if version is None:
        raise ApiUnreachable(f"the API server does not stream lists of {resource}", Reason.INACTIVE)
    return version


def _ignore_changes(changes: Mapping[Any, Any]) -> None:
    """Ignore changes: the default before `run` receives a function for them."""
