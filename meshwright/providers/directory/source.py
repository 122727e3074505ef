"""A directory of manifests as a source, watched for changes."""

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
    """Source for the manifests in a directory and its folders.

    `clock` returns the time with its zone. A removal or a new error is accepted after the time `settle`, and
    an empty directory after the time `hold`. `retry` is the time between checks for a missing directory. With
    `polling` the source compares files periodically instead of using the system's events. `reread` is the
    time for one round over every file, in case events were lost; see providers.directory.rounds.
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
        """Read all manifest files for the first time; raises DirectoryError if this is impossible."""
        listing = list_directory(self._path)
        contents = ((name, read_content(self._path, name)) for name in listing.files)
        freshness = Freshness(last_full_read=self._clock())
        self._rounds.was_read(listing.files, listing, self._monotonic())
        self._publish(Answer().after(Belief(Manifests().apply_stream(contents)), listing, freshness))

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects that apply, in their last good form if the newest one is bad."""
        return self._answer.belief.state.objects()

    def problems(self) -> Problems:
        """Return the problems of the directory, sorted by place."""
        return self._answer.problems

    def freshness(self) -> Freshness:
        """Return the age of the directory's objects, and since when it cannot be read."""
        return self._answer.freshness

    def counts(self) -> Counts:
        """Return the numbers of the directory's objects: good, stale and refused."""
        return self._answer.counts

    async def first(self) -> None:
        """Read all manifest files for the first time; raises DirectoryError if this is impossible."""
        await asyncio.to_thread(self.load)

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch the directory until cancelled; call `changed` after new objects, problems or errors."""
        watcher: asyncio.Task[None] | None = None
        watched: tuple[int, int] | None = None
        is_slice_due = False
        try:
            while True:
                await self._refresh(changed, is_slice_due=is_slice_due)
                listing = self._answer.listing
                root = listing.root if listing and not self._answer.freshness.error else None
                # Compare inodes: after a directory is replaced, the watch still belongs to the old directory.
                if root != watched:
                    await _stop(watcher)
                    watcher = asyncio.create_task(self._watch.run(), name="watch-mesh") if root else None
                    watched = root
                if watcher is not None and watcher.done():
                    watcher.result()  # only an unexpected error ends the watcher; raise it
                is_slice_due = await self._next()
        finally:
            await _stop(watcher)

    async def _next(self) -> bool:
        """Wait for an event, a decision about a doubt, or the next slice; return whether a slice is due."""
        now, answer = self._monotonic(), self._answer
        failing = bool(answer.freshness.error)
        sliced = self._looked + self._rounds.wait(answer.listing)
        held_until = None if answer.held_since is None else answer.held_since + self._hold
        soon = (duration for duration in (answer.belief.due, held_until) if duration is not None)
        due = now + self._retry if failing else min((sliced, *soon))
        with contextlib.suppress(TimeoutError):  # the time is up without an event
            async with asyncio.timeout(max((due - now).total_seconds(), 0.001)):
                await self._watch.woken.wait()
        self._watch.woken.clear()
        return self._monotonic() >= sliced

    async def _refresh(self, changed: Callable[[], None], *, is_slice_due: bool) -> None:
        """Read changed manifest files once, publish the result, and call `changed` if it differs."""
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
        """Read the files named by events or a slice, or list the directory if necessary; runs in a thread."""
        slice_result = SliceResult(unsure=unsure, is_last=unsure)
        if is_slice_due and before.listing is not None and not unsure:
            self._looked = self._monotonic()
            slice_result = self._rounds.slice(before.listing, self._looked)
        beneath = f"{self._path}/"
        # A path outside the directory stays absolute, so that it matches no file's name.
        named = {
            *(path.removeprefix(beneath) for path in touched),
            *slice_result.names,
            *before.belief.doubts,
        }
        names, listing = self._changed(before, named, unsure=slice_result.unsure)
        if before.held_since is not None:  # the files of an answer that is held back count as unread
            names.update(before.belief.state.holders, listing.files)
        observed: dict[str, Content] = {
            name: read_content(self._path, name) for name in sorted(names) if not is_unlisted(listing, name)
        }
        belief, held = self._believed(before, observed)
        last_event = before.freshness.last_event
        if held is None:
            last_event = self._clock() if belief.state is not before.belief.state else last_event
            self._rounds.was_read(observed, listing, self._monotonic())
        full_read = self._clock() if slice_result.is_last else before.freshness.last_full_read
        return before.after(belief, listing, Freshness(last_event, full_read), held)

    def _changed(self, before: Answer, named: set[str], *, unsure: bool) -> tuple[set[str], DirectoryListing]:
        """Return the names of files to read, from `named` or from all files, and the matching listing."""
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
        """Return the accepted state, and since when an empty directory is held back (None: it is not).

        A directory counts as empty if all files are removed or without objects, because a failed command
        often leaves empty files behind.
        """
        held, now = before.held_since, self._monotonic()
        # While an answer is held back, the settle time adds nothing: `hold` is longer.
        belief = settle(before.belief, observed, now, self._settle if held is None else timedelta(0))
        in_force = GuardedValue(before.belief.state.objects(), held)
        after = guard(in_force, belief.state.objects(), now, self._hold)
        if after.held_since is not None:
            return Belief(before.belief.state), after.held_since
        if held is not None and after.in_force:  # objects are back, perhaps not all yet
            belief = settle(before.belief, observed, now, self._settle)
        return belief, None

    def _publish(self, after: Answer) -> None:
        before, self._answer = self._answer, after
        log_differences(before, after)


async def _stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait for its end."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task])
