"""Source for a provider, called periodically in a thread; its failure does not affect other sources."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import FromSource, Origin
from meshwright.mesh.problems.problem import Problem, Problems, Severity, log_gone, log_new
from meshwright.mesh.problems.tally import Tally
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness, Provider
from meshwright.providers.guard import HOLD, GuardedValue, guard
from meshwright.providers.moments import Moment, monotonic
from meshwright.providers.objects import Objects, read_form
from meshwright.specs.codes import Code
from meshwright.specs.reader import ManifestReading, key_meant, read

PATIENCE: Final = timedelta(seconds=10)
"""Time until an answer counts as missing."""
AT_THE_START: Final = timedelta(seconds=2)
"""Time for which the server waits for the first answer."""

_log = structlog.get_logger("providers.installed.source")


class NoAnswer(Exception):
    """A provider has not answered in time, or has raised an exception.

    The message is a predicate of the provider, for example "has not answered within 10 s".
    """


class ProviderObjects(Objects[str]):
    """The objects of one installed provider, which is their only holder."""

    __slots__ = ()

    @staticmethod
    def holder_of(sourced: SourcedObject) -> str:
        """Return the name of the provider that returned an object."""
        match sourced.origin:
            case FromSource(source):
                return source
            case other:
                raise TypeError(f"{sourced.key} is from {other}, which is not a provider")


@dataclass(frozen=True, slots=True)
class ProviderState:
    """The objects, problems and age of a provider at one moment; replaced as a whole."""

    state: ProviderObjects = field(default_factory=ProviderObjects)
    held_since: Moment | None = None
    freshness: Freshness = field(default_factory=Freshness)
    problems: Problems = ()


class ProviderSource:
    """Source for an installed provider.

    `clock` returns the time with its zone. `hold` is the delay before an empty answer after one with objects
    is accepted. `patience` is the time limit for an answer, and `at_the_start` for the first one.
    """

    def __init__(
        self,
        name: str,
        provider: Provider,
        clock: Callable[[], datetime],
        *,
        hold: timedelta = HOLD,
        patience: timedelta = PATIENCE,
        at_the_start: timedelta = AT_THE_START,
        monotonic: Callable[[], Moment] = monotonic,
    ) -> None:
        self.name = name
        self._provider = provider
        self._seconds = provider.seconds
        self._clock = clock
        self._hold = hold
        self._patience = patience.total_seconds()
        self._at_the_start = at_the_start.total_seconds()
        self._monotonic = monotonic
        self._state = ProviderState()
        self._pending_call: asyncio.Future[Sequence[str]] | None = None

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects of the provider that apply, in their last good form."""
        return self._state.state.objects()

    def problems(self) -> Problems:
        """Return the problems of the manifests and of the provider itself."""
        return self._state.problems

    def freshness(self) -> Freshness:
        """Return the age of the provider's last answer, and the reason if it may be outdated."""
        return self._state.freshness

    def counts(self) -> Counts:
        """Return the numbers of the provider's objects and problems."""
        return Counts.count(self.objects(), self._state.state.stale, self._state.problems)

    async def first(self) -> None:
        """Call the provider once; a failure does not keep the server from starting."""
        await self._look(self._at_the_start)

    async def run(self, changed: Callable[[], None]) -> None:
        """Call the provider periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            before = self._state
            await self._look(self._patience)
            after = self._state
            if after.state is not before.state or after.problems != before.problems:
                changed()

    async def _look(self, seconds: float) -> None:
        try:
            after = await asyncio.to_thread(self._taken, await self._answer(seconds))
        except Exception as error:  # noqa: BLE001 - code of another project can raise anything
            words = str(error) if isinstance(error, NoAnswer) else _words(error)
            after = _failing(self._state, self.name, words, self._clock())
        self._publish(after)

    async def _answer(self, seconds: float) -> Sequence[str]:
        """Return the manifests as JSON.

        While a call hangs the provider is not called again, so that threads do not pile up; a late answer
        counts.
        """
        if self._pending_call is None:
            self._pending_call = asyncio.get_running_loop().create_future()
            thread = threading.Thread(
                target=_ask,
                args=(self._provider, asyncio.get_running_loop(), self._pending_call),
                name=f"provider {self.name}",
                daemon=True,  # a hanging provider must not keep the server from exiting
            )
            thread.start()
        done, _ = await asyncio.wait((self._pending_call,), timeout=seconds)
        if not done:
            raise NoAnswer(f"has not answered within {seconds:g} s")
        asked, self._pending_call = self._pending_call, None
        return asked.result()

    def _taken(self, answer: Sequence[str]) -> ProviderState:
        """Return the state after an answer; runs in a thread, because there may be thousands of manifests."""
        before, now = self._state, self._clock()
        mark = hashlib.sha256("\n".join(answer).encode()).hexdigest()
        form = before.state.holders.get(self.name)
        if form is None or form.mark != mark:
            documents = [json.loads(item) for item in answer]
            tally = Tally()
            readings: list[tuple[Origin, ManifestReading]] = [
                (place := _place(self.name, number, document), read(document, place, tally))
                for number, document in enumerate(documents, 1)
            ]
            if rest := tally.rest(FromSource(self.name), None, "in this answer"):
                readings.append((FromSource(self.name), ManifestReading(problems=rest)))
            form = read_form(mark, readings, form)
        state = before.state.holding({self.name: form})
        had = GuardedValue(before.state.objects(), before.held_since)
        held_since = guard(had, state.objects(), self._monotonic(), self._hold).held_since
        if held_since is not None:
            state = before.state
        problems = (*((_hold_problem(self.name),) if held_since is not None else ()), *state.problems())
        event = now if state is not before.state else before.freshness.last_event
        held = ("all manifests",) if held_since is not None else ()
        return ProviderState(state, held_since, Freshness(event, now, held=held), problems)

    def _publish(self, after: ProviderState) -> None:
        before, self._state = self._state, after
        log_new(_log, "provider problem", after.problems, before.problems)
        log_gone(_log, before.problems, after.problems)


def _ask(
    provider: Provider, loop: asyncio.AbstractEventLoop, pending_call: "asyncio.Future[Sequence[str]]"
) -> None:
    """Call the provider in this thread, and pass the manifests or the error to the event loop."""
    answer, failed = list[str](), None
    try:
        answer = [_text(manifest) for manifest in provider.manifests()]
    except BaseException as error:  # noqa: BLE001 - a thread can report only through the future
        failed = NoAnswer(_words(error))  # a future rejects some exceptions, for example StopIteration
    try:
        loop.call_soon_threadsafe(_settle, pending_call, answer, failed)
    except RuntimeError:
        return  # the server has exited meanwhile


def _settle(
    pending_call: "asyncio.Future[Sequence[str]]", answer: Sequence[str], failed: NoAnswer | None
) -> None:
    if pending_call.done():
        return
    if failed is None:
        pending_call.set_result(answer)
    else:
        pending_call.set_exception(failed)
        pending_call.exception()  # marks the exception as retrieved: the caller may have given up waiting


def _text(manifest: object) -> str:
    """Return a provider's manifest as JSON; raises TypeError or ValueError for any other value."""
    if not isinstance(manifest, dict):
        raise TypeError(f"a manifest is of type {type(manifest).__name__}; must be a dict")
    result = json.dumps(manifest, sort_keys=True, ensure_ascii=False, allow_nan=False)
    result.encode()
    return result


def _place(name: str, number: int, document: object) -> FromSource:
    """Return the place of a manifest: its key, because the order of an answer has no meaning."""
    key = key_meant(document)
    return FromSource(name, f"manifest {number}" if key is None else str(key))


def _words(error: BaseException) -> str:
    try:
        text = str(error).encode(errors="backslashreplace").decode()
    except Exception:  # noqa: BLE001 - the exception's __str__ is code of another project too
        text = "the error lacks readable text"
    return " ".join(f"fails: {type(error).__name__}: {text}".split())[:500]


def _failing(before: ProviderState, name: str, words: str, now: datetime) -> ProviderState:
    since = before.freshness.error_since or now
    problem = _problem(
        Code.PROVIDER_FAILS,
        Severity.ERROR,
        name,
        f"{words}; the objects of the last good answer stay in force",
    )
    problems = (problem, *(item for item in before.problems if item.code != Code.PROVIDER_FAILS))
    return replace(
        before, problems=problems, freshness=replace(before.freshness, error=words, error_since=since)
    )


def _hold_problem(name: str) -> Problem:
    expected = (
        "the answer does not have objects any more; the objects of the last answer stay in "
        "force for empty_answer_hold_seconds, in case the empty answer is a mistake"
    )
    return _problem(Code.EMPTY_HELD, Severity.WARNING, name, expected)


def _problem(code: Code, severity: Severity, name: str, expected: str) -> Problem:
    return Problem(code=str(code), severity=severity, origin=FromSource(name), expected=expected)
