"""A directory of manifests, watched: the mesh specification and an endpoint provider at once."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
import watchfiles

from mesh.endpoints import Inventory
from mesh.objects import ObjectKey, Origin, Problem, Severity, Sourced
from mesh.picture import Picture
from providers.contract import Counts, Freshness
from providers.files import (
    DirectoryError,
    Listing,
    changed_files,
    is_unlisted,
    list_directory,
    read_content,
    relisted,
)
from providers.guard import HOLD, Guarded, guard
from providers.manifests import Content, FileForm, Manifests
from providers.settling import Belief, settle
from smi.codes import Code

SETTLE = timedelta(milliseconds=300)
REREAD = timedelta(seconds=30)
RETRY = timedelta(seconds=1)
"""How often a directory that has vanished is looked for."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the source says at one moment; replaced as a whole, so that readers see one moment."""

    belief: Belief
    listing: Listing | None
    freshness: Freshness
    objects: Mapping[ObjectKey, Sourced]
    problems: tuple[Problem, ...]
    inventory: Inventory
    held_since: datetime | None = None
    """Since when the directory holds no manifest at all, and is not believed."""


class DirectorySource:
    """Manifests from a directory and its folders.

    `clock` gives the time with its zone; `settle` is how long a deletion or a new error must last to be
    believed; `hold` is how long it takes to believe that a directory with manifests has none any more;
    `reread` is how often everything is read anew, in case events were lost (they are for
    symlinks that lead out of the directory, and on some network file systems); `polling` watches by
    looking instead of by the system's events.
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
        polling: bool = False,
    ) -> None:
        self._path = path.absolute()
        self._clock = clock
        self._settle = settle
        self._hold = hold
        self._reread = reread
        self._polling = polling
        self._answer = _answer(Belief(), None, Freshness())
        self._touched: set[str] = set()
        self._unsure = True

    def load(self) -> None:
        """Read everything for the first time, and believe it; raise DirectoryError if that cannot be."""
        listing = list_directory(self._path)
        contents = {name: read_content(self._path, name) for name in listing.files}
        now = self._clock()
        belief = Belief(Manifests().apply_all(contents))
        self._publish(_answer(belief, listing, Freshness(last_full_read=now)))

    def objects(self) -> Mapping[ObjectKey, Sourced]:
        """Return the objects in force, sorted by key; the last good form where the newest is bad."""
        return self._answer.objects

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong in the directory, sorted by place."""
        return self._answer.problems

    def inventory(self) -> Inventory:
        """Return the workloads and slices in force."""
        return self._answer.inventory

    def freshness(self) -> Freshness:
        """Say how old the answer is, and since when the directory cannot be read."""
        return self._answer.freshness

    def counts(self) -> Counts:
        """Count the objects."""
        return Counts.of(self._answer.objects, self._answer.problems)

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch until cancelled; `changed` is called after each change of objects, problems or error."""
        wake = asyncio.Event()
        watcher: asyncio.Task[None] | None = None
        watched: tuple[int, int] | None = None
        read_all = True  # something may have changed since load()
        try:
            while True:
                await self._refresh(changed, read_all=read_all)
                listing = self._answer.listing
                root = listing.root if listing and not self._answer.freshness.error else None
                if root != watched:
                    await _stop(watcher)
                    watcher = asyncio.create_task(self._watch(wake), name="watch-mesh") if root else None
                    watched = root
                if watcher is not None and watcher.done():
                    watcher.result()  # it never ends but by an error nobody expected
                read_all = await self._next(wake)
        finally:
            await _stop(watcher)

    async def _watch(self, wake: asyncio.Event) -> None:
        """Set `wake` at every event beneath the directory; while there are none to be had, every second."""
        logged = False
        while True:
            try:
                await self._listen(wake)
            except (OSError, RuntimeError) as error:
                if not logged:
                    _log.warning("directory_not_watched", directory=str(self._path), error=str(error))
                logged = True
            await asyncio.sleep(RETRY.total_seconds())
            self._look_everywhere(wake)

    async def _listen(self, wake: asyncio.Event) -> None:
        """Take events from the system until they end."""
        watch = watchfiles.awatch(
            self._path,
            watch_filter=None,
            debounce=50,
            step=10,
            rust_timeout=int(RETRY.total_seconds() * 1000),
            yield_on_timeout=True,
            force_polling=self._polling or None,
            poll_delay_ms=100,
            ignore_permission_denied=True,
        )
        # What changed before the watch stood has brought no event: look again soon, when it usually stands,
        # and at its first answer, which proves it.
        asyncio.get_running_loop().call_later(0.1, self._look_everywhere, wake)
        proven = False
        async for events in watch:
            self._touched.update(path for _, path in events)
            if not proven:
                self._look_everywhere(wake)
            elif events:
                wake.set()
            proven = True

    def _look_everywhere(self, wake: asyncio.Event) -> None:
        """Wake, and trust no event until everything was listed."""
        self._unsure = True
        wake.set()

    async def _next(self, wake: asyncio.Event) -> bool:
        """Wait for an event, a doubt to decide, or the next full reading; say whether it is that."""
        now = self._clock()
        freshness = self._answer.freshness
        full = (freshness.last_full_read or now) + self._reread
        soon = (self._answer.belief.due, self._held_until())
        due = now + RETRY if freshness.error else min((full, *(each for each in soon if each is not None)))
        with contextlib.suppress(TimeoutError):  # it is due, event or none
            async with asyncio.timeout(max((due - now).total_seconds(), 0.001)):
                await wake.wait()
        wake.clear()
        return bool(freshness.error) or self._clock() >= full

    def _held_until(self) -> datetime | None:
        since = self._answer.held_since
        return None if since is None else since + self._hold

    async def _refresh(self, changed: Callable[[], None], *, read_all: bool) -> None:
        """Look at the directory once, and publish what is new."""
        before = self._answer
        touched, self._touched = self._touched, set()
        unsure, self._unsure = self._unsure, False
        try:
            after = await asyncio.to_thread(self._look, before, touched, read_all=read_all, unsure=unsure)
        except DirectoryError as error:
            since = before.freshness.error_since or self._clock()
            freshness = replace(before.freshness, error=str(error), error_since=since)
            # Files that went just before their directory did have not been deleted by anybody.
            after = replace(before, belief=Belief(before.belief.state), freshness=freshness)
        self._publish(after)
        if _differs(before, after):
            changed()

    def _look(self, before: _Answer, touched: Collection[str], *, read_all: bool, unsure: bool) -> _Answer:
        """Read what events named, or list the directory where they do not suffice; for a thread."""
        names, listing = self._changed(before, touched, read_all=read_all, unsure=unsure)
        if (held := self._held_back(before, listing)) is not None:
            now = self._clock()
            fresh = Freshness(
                before.freshness.last_event, now if read_all else before.freshness.last_full_read
            )
            return _answer(Belief(before.belief.state), listing, fresh, before, held_since=held)
        waited = before.held_since is not None and not listing.files  # for longer than anything settles
        names.update(before.belief.state.files if waited else ())
        observed: dict[str, Content] = {
            name: read_content(self._path, name) for name in sorted(names) if not is_unlisted(listing, name)
        }
        now = self._clock()
        belief = settle(before.belief, observed, now, timedelta(0) if waited else self._settle)
        freshness = Freshness(
            last_event=now if belief.state is not before.belief.state else before.freshness.last_event,
            last_full_read=now if read_all else before.freshness.last_full_read,
        )
        return _answer(belief, listing, freshness, before)

    def _changed(
        self, before: _Answer, touched: Collection[str], *, read_all: bool, unsure: bool
    ) -> tuple[set[str], Listing]:
        """Return the files to read, and the listing that goes with them."""
        doubts = before.belief.doubts
        beneath = f"{self._path}/"
        named = {
            path.removeprefix(beneath) for path in touched
        }  # another path stays absolute: no file's name
        if before.listing is not None and not (read_all or unsure):
            listing = relisted(self._path, before.listing, {*named, *doubts})
            if listing is not None:
                return {*named, *doubts}, listing
        listing = list_directory(self._path)
        names = set(changed_files(before.listing, listing, (*before.belief.state.files, *doubts)))
        names.update(named & listing.files.keys())
        names.update(listing.files if read_all else doubts)
        return names, listing

    def _held_back(self, before: _Answer, listing: Listing) -> datetime | None:
        """Say since when it is not believed that there is no manifest any more; None where there is one."""
        files = before.belief.state.files
        found = files if listing.files or listing.unlisted else Picture[str, FileForm]()
        return guard(Guarded(files, before.held_since), found, self._clock(), self._hold).held_since

    def _publish(self, after: _Answer) -> None:
        before, self._answer = self._answer, after
        if after.problems != before.problems:
            _log_problems(before.problems, after.problems)
        if after.freshness.error and not before.freshness.error:
            _log.error("directory_unreadable", error=after.freshness.error)
        if before.freshness.error and not after.freshness.error:
            _log.info("directory_readable", directory=str(self._path))


def _answer(
    belief: Belief,
    listing: Listing | None,
    freshness: Freshness,
    before: _Answer | None = None,
    held_since: datetime | None = None,
) -> _Answer:
    unlisted = listing.unlisted if listing else ()
    freshness = replace(freshness, held=("all manifests",) if held_since is not None else ())
    same = before is not None and before.belief.state is belief.state and before.held_since == held_since
    if before is not None and same and before.listing and before.listing.unlisted == unlisted:
        return replace(before, belief=belief, listing=listing, freshness=freshness)
    state = belief.state
    missing = (*map(_unlisted_problem, unlisted), *([_HELD] if held_since is not None else []))
    problems = (*missing, *state.problems())
    return _Answer(belief, listing, freshness, state.objects(), problems, state.inventory(), held_since)


def _unlisted_problem(folder: str) -> Problem:
    expected = "must be a folder that can be listed; what it held stays in force"
    return Problem(str(Code.DIRECTORY_UNREADABLE), Severity.ERROR, Origin(folder), None, "", "", expected)


_HELD: Final = Problem(
    str(Code.EMPTY_HELD),
    Severity.WARNING,
    Origin("."),
    None,
    "",
    "",
    "the directory holds no manifest any more; all are kept for a while, in case that is a mistake",
)


def _differs(before: _Answer, after: _Answer) -> bool:
    return (
        before.belief.state is not after.belief.state
        or before.problems != after.problems
        or before.freshness.error != after.freshness.error
    )


def _log_problems(before: tuple[Problem, ...], after: tuple[Problem, ...]) -> None:
    known, now = set(before), set(after)
    for problem in after:
        if problem not in known:
            _log_problem(problem)
    for problem in before:
        if problem not in now:
            _log.info("problem_gone", code=problem.code, origin=str(problem.origin), key=_named(problem))


def _log_problem(problem: Problem) -> None:
    match problem.severity:
        case Severity.ERROR:
            log = _log.error
        case Severity.WARNING:
            log = _log.warning
        case Severity.INFO:
            log = _log.info
    log("manifest_problem", code=problem.code, problem=str(problem))


def _named(problem: Problem) -> str:
    return str(problem.key) if problem.key else "document"


async def _stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait until it has ended."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task])
