"""A directory of manifests as a source, watched."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness
from meshwright.providers.directory.file_form import Content
from meshwright.providers.directory.files import (
    DirectoryError,
    DirectoryListing,
    changed_files,
    is_unlisted,
    list_directory,
    read_content,
    relisted,
)
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.directory.rounds import Rounds, SliceResult
from meshwright.providers.directory.scan_result import Answer, differs, log_differences
from meshwright.providers.directory.settlement import Belief, settle
from meshwright.providers.directory.watch import DirectoryWatch
from meshwright.providers.guard import HOLD, GuardedValue, guard
from meshwright.providers.moments import Moment, monotonic

SETTLE = timedelta(milliseconds=300)
REREAD = timedelta(seconds=30)
RETRY = timedelta(seconds=1)


class DirectorySource:
    """Manifests from a directory and its folders.

    `clock` gives the time with its zone; `settle` is how long a deletion or a new error must last to be
    believed; `hold` is how long it takes to believe that a directory with manifests has none any more;
    `retry` is how often a directory that has vanished is looked for; `polling` watches by looking instead of
    by the system's events.

    `reread` is how often every file is looked at, in case events were lost; see providers.directory.rounds.
    """

    name = "directory"

    def __init__(
        self,
        path: Path,
        clock: Callable[[], datetime],
        *,
        settle: timedelta = SETTLE,
        hold: timedelta = HOLD,
        reread: timedelta = REREAD,
        retry: timedelta = RETRY,
        polling: bool = False,
        monotonic: Callable[[], Moment] = monotonic,
    ) -> None:
        self._path = path.absolute()
        self._clock = clock
        self._monotonic = monotonic
        self._settle = settle
        self._hold = hold
        self._retry = retry
        self._rounds = Rounds(self._path, reread)
        self._looked = monotonic()
        self._watch = DirectoryWatch(self._path, retry=retry, polling=polling)
        self._answer = Answer()

    def load(self) -> None:
        """Read everything for the first time, and believe it; raise DirectoryError if that cannot be."""
        listing = list_directory(self._path)
        contents = ((name, read_content(self._path, name)) for name in listing.files)
        freshness = Freshness(last_full_read=self._clock())
        self._rounds.was_read(listing.files, listing, self._monotonic())
        self._publish(Answer().after(Belief(Manifests().apply_each(contents)), listing, freshness))

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects in force; the last good form where the newest is bad."""
        return self._answer.belief.state.objects()

    def problems(self) -> Problems:
        """Return what is wrong in the directory, sorted by place."""
        return self._answer.problems

    def freshness(self) -> Freshness:
        """Say how old the answer is, and since when the directory cannot be read."""
        return self._answer.freshness

    def counts(self) -> Counts:
        """Count the objects."""
        return self._answer.counts

    async def first(self) -> None:
        """Read everything for the first time; raise DirectoryError if that cannot be."""
        await asyncio.to_thread(self.load)

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch until cancelled; `changed` is called after each change of objects, problems or error."""
        watcher: asyncio.Task[None] | None = None
        watched: tuple[int, int] | None = None
        is_slice_due = False
        try:
            while True:
                await self._refresh(changed, is_slice_due=is_slice_due)
                listing = self._answer.listing
                root = listing.root if listing and not self._answer.freshness.error else None
                # By its inode: a directory that was put in the place of another has the watch of the other.
                if root != watched:
                    await _stop(watcher)
                    watcher = asyncio.create_task(self._watch.run(), name="watch-mesh") if root else None
                    watched = root
                if watcher is not None and watcher.done():
                    watcher.result()  # it never ends but by an error nobody expected
                is_slice_due = await self._next()
        finally:
            await _stop(watcher)

    async def _next(self) -> bool:
        """Wait for an event, a doubt to decide, or the next slice of a round; say whether it is that."""
        now, answer = self._monotonic(), self._answer
        failing = bool(answer.freshness.error)
        sliced = self._looked + self._rounds.wait(answer.listing)
        held_until = None if answer.held_since is None else answer.held_since + self._hold
        soon = (each for each in (answer.belief.due, held_until) if each is not None)
        due = now + self._retry if failing else min((sliced, *soon))
        with contextlib.suppress(TimeoutError):  # it is due, event or none
            async with asyncio.timeout(max((due - now).total_seconds(), 0.001)):
                await self._watch.woken.wait()
        self._watch.woken.clear()
        return self._monotonic() >= sliced

    async def _refresh(self, changed: Callable[[], None], *, is_slice_due: bool) -> None:
        """Look at the directory once, and publish what is new."""
        before = self._answer
        touched, unsure = self._watch.take()
        unsure = unsure or bool(before.freshness.error)
        try:
            after = await asyncio.to_thread(
                self._look, before, touched, unsure=unsure, is_slice_due=is_slice_due
            )
        except DirectoryError as error:
            after = before.unreadable(str(error), self._clock())
        self._publish(after)
        if differs(before, after):
            changed()

    def _look(self, before: Answer, touched: Collection[str], *, unsure: bool, is_slice_due: bool) -> Answer:
        """Read what events or a slice named, or list the directory where that does not do; for a thread."""
        found = SliceResult(unsure=unsure, is_last=unsure)
        if is_slice_due and before.listing is not None and not unsure:
            self._looked = self._monotonic()
            found = self._rounds.slice(before.listing, self._looked)
        beneath = f"{self._path}/"
        # Another path stays absolute, which is no file's name.
        named = {*(path.removeprefix(beneath) for path in touched), *found.names, *before.belief.doubts}
        names, listing = self._changed(before, named, unsure=found.unsure)
        if before.held_since is not None:  # what is held back counts as not read
            names.update(before.belief.state.holders, listing.files)
        observed: dict[str, Content] = {
            name: read_content(self._path, name) for name in sorted(names) if not is_unlisted(listing, name)
        }
        belief, held = self._believed(before, observed)
        last_event = before.freshness.last_event
        if held is None:
            last_event = self._clock() if belief.state is not before.belief.state else last_event
            self._rounds.was_read(observed, listing, self._monotonic())
        full_read = self._clock() if found.is_last else before.freshness.last_full_read
        return before.after(belief, listing, Freshness(last_event, full_read), held)

    def _changed(self, before: Answer, named: set[str], *, unsure: bool) -> tuple[set[str], DirectoryListing]:
        """Return the files to read, of those named or of all, and the listing that goes with them."""
        if before.listing is not None and not unsure:
            listing = relisted(self._path, before.listing, named) if named else before.listing
            if listing is not None:
                return named, listing
        listing = list_directory(self._path)
        doubts = before.belief.doubts
        names = set(changed_files(before.listing, listing, (*before.belief.state.holders, *doubts)))
        names.update(named & (listing.files.keys() | doubts.keys()))
        return names, listing

    def _believed(self, before: Answer, observed: Mapping[str, Content]) -> tuple[Belief, Moment | None]:
        """Return what is believed, and since when it is not that there is no object any more, None if it is.

        Whether all files have gone, or say nothing: a command that failed leaves an empty one behind.
        """
        held, now = before.held_since, self._monotonic()
        # What is held back is so for longer than anything settles.
        belief = settle(before.belief, observed, now, self._settle if held is None else timedelta(0))
        in_force = GuardedValue(before.belief.state.objects(), held)
        after = guard(in_force, belief.state.objects(), now, self._hold)
        if after.held_since is not None:
            return Belief(before.belief.state), after.held_since
        if held is not None and after.in_force:  # something is there again, and may not be all yet
            belief = settle(before.belief, observed, now, self._settle)
        return belief, None

    def _publish(self, after: Answer) -> None:
        before, self._answer = self._answer, after
        log_differences(before, after)


async def _stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait until it has ended."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task])
