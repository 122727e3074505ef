"""A directory of manifests, watched: the mesh specification and an endpoint provider at once."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import structlog
import watchfiles

from mesh.endpoints import Inventory
from mesh.objects import ObjectKey, Origin, Problem, Severity, Sourced
from providers.contract import Freshness
from providers.files import (
    DirectoryError,
    Listing,
    changed_files,
    is_unlisted,
    list_directory,
    read_content,
)
from providers.manifests import Content, Manifests
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


class DirectorySource:
    """Manifests from a directory and its folders.

    `clock` gives the time with its zone; `settle` is how long a deletion or a new error must last to be
    believed; `reread` is how often everything is read anew, in case events were lost (they are for
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
        reread: timedelta = REREAD,
        polling: bool = False,
    ) -> None:
        self._path = path.absolute()
        self._clock = clock
        self._settle = settle
        self._reread = reread
        self._polling = polling
        self._answer = _answer(Belief(), None, Freshness())
        self._touched: set[str] = set()

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
            wake.set()

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
        asyncio.get_running_loop().call_later(0.1, wake.set)
        proven = False
        async for events in watch:
            self._touched.update(path for _, path in events)
            if events or not proven:
                wake.set()
            proven = True

    async def _next(self, wake: asyncio.Event) -> bool:
        """Wait for an event, a doubt to decide, or the next full reading; say whether it is that."""
        now = self._clock()
        freshness = self._answer.freshness
        full = (freshness.last_full_read or now) + self._reread
        due = now + RETRY if freshness.error else min(full, self._answer.belief.due or full)
        with contextlib.suppress(TimeoutError):  # it is due, event or none
            async with asyncio.timeout(max((due - now).total_seconds(), 0.001)):
                await wake.wait()
        wake.clear()
        return bool(freshness.error) or self._clock() >= full

    async def _refresh(self, changed: Callable[[], None], *, read_all: bool) -> None:
        """Look at the directory once, and publish what is new."""
        before = self._answer
        touched, self._touched = self._touched, set()
        try:
            after = await asyncio.to_thread(self._look, before, touched, read_all=read_all)
        except DirectoryError as error:
            since = before.freshness.error_since or self._clock()
            freshness = replace(before.freshness, error=str(error), error_since=since)
            # Files that went just before their directory did have not been deleted by anybody.
            after = replace(before, belief=Belief(before.belief.state), freshness=freshness)
        self._publish(after)
        if _differs(before, after):
            changed()

    def _look(self, before: _Answer, touched: Collection[str], *, read_all: bool) -> _Answer:
        """List the directory and read what has changed; runs in a thread of its own."""
        listing = list_directory(self._path)
        known = (*(name for name, _ in before.belief.state.files), *before.belief.doubts)
        names = set(changed_files(before.listing, listing, known))
        paths = {str(self._path / name): name for name in listing.files} if touched else {}
        names.update(paths[path] for path in touched if path in paths)
        names.update(listing.files if read_all else before.belief.doubts)
        observed: dict[str, Content] = {
            name: read_content(self._path, name) for name in sorted(names) if not is_unlisted(listing, name)
        }
        now = self._clock()
        belief = settle(before.belief, observed, now, self._settle)
        moved = belief.state != before.belief.state
        freshness = Freshness(
            last_event=now if moved else before.freshness.last_event,
            last_full_read=now if read_all else before.freshness.last_full_read,
        )
        return _answer(belief, listing, freshness, before)

    def _publish(self, after: _Answer) -> None:
        before, self._answer = self._answer, after
        known, now = set(before.problems), set(after.problems)
        for problem in after.problems:
            if problem not in known:
                _log_problem(problem)
        for problem in before.problems:
            if problem not in now:
                _log.info("problem_gone", code=problem.code, origin=str(problem.origin), key=_named(problem))
        if after.freshness.error and not before.freshness.error:
            _log.error("directory_unreadable", error=after.freshness.error)
        if before.freshness.error and not after.freshness.error:
            _log.info("directory_readable", directory=str(self._path))


def _answer(
    belief: Belief, listing: Listing | None, freshness: Freshness, before: _Answer | None = None
) -> _Answer:
    unlisted = listing.unlisted if listing else ()
    same = before is not None and before.belief.state == belief.state
    if before is not None and same and before.listing and before.listing.unlisted == unlisted:
        return replace(before, belief=belief, listing=listing, freshness=freshness)
    state = belief.state
    problems = (*(_unlisted_problem(folder) for folder in unlisted), *state.problems())
    return _Answer(belief, listing, freshness, state.objects(), problems, state.inventory())


def _unlisted_problem(folder: str) -> Problem:
    expected = "must be a folder that can be listed; what it held stays in force"
    return Problem(str(Code.DIRECTORY_UNREADABLE), Severity.ERROR, Origin(folder), None, "", "", expected)


def _differs(before: _Answer, after: _Answer) -> bool:
    return (
        before.belief.state != after.belief.state
        or before.problems != after.problems
        or before.freshness.error != after.freshness.error
    )


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
