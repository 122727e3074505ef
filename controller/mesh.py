"""The loop from changes to snapshots: gather, follow, publish what was touched."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog

from admin.metrics import Metrics
from catalog.view import MeshSettings, View
from controller.debounce import Changes, Pace
from controller.following import Following, Inputs, in_slices
from controller.issuing import CertificateKeeper
from controller.published import Failure, Published, Step
from controller.serving import Translate
from controller.verifying import verify
from mesh.identity import ProxyName
from mesh.objects import ObjectKey, Origin, Problem, Severity, Sourced
from providers.contract import EndpointProvider
from xds.cache import GroupKey, SnapshotCache

RENEWAL_SECONDS: Final = 30.0
"""How often certificates are looked at; a wall clock that jumps is noticed within that."""

LINT_PAUSE: Final = 1.0
"""The least time between two searches for problems, each of which looks at the whole mesh."""

_log = structlog.get_logger("controller.mesh")


class Specification(Protocol):
    """Where the mesh's objects come from: a directory of manifests first."""

    def objects(self) -> Mapping[ObjectKey, Sourced]:
        """Return the objects in force."""

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with them."""


@dataclass(frozen=True, slots=True)
class MeshState:
    """What the newest wave came to. The view is the loop's own, and changes with the next wave.

    `proxies` are those that should be here; the same tuple as long as none comes or goes.
    """

    view: View | None = None
    published: Published = field(default_factory=Published)
    problems: tuple[Problem, ...] = ()
    proxies: tuple[ProxyName, ...] = ()


def read_inputs(
    specification: Specification, providers: Iterable[EndpointProvider], settings: MeshSettings
) -> Inputs:
    """Take the sources' present answers."""
    return Inputs(
        specification.objects(),
        tuple((provider.name, provider.inventory()) for provider in providers),
        specification.problems(),
        settings,
    )


def problem_order(problem: Problem) -> tuple[Origin, str, str, str, str]:
    """Return what problems are sorted by; their keys may be None, which has no order."""
    return (problem.origin, problem.code, str(problem.key), problem.field, problem.value)


def failure_problem(failure: Failure) -> Problem:
    """Say that a group failed, in the form of all problems."""
    return Problem(
        "translation-failed",
        Severity.ERROR,
        Origin("catalog"),
        None,
        "group",
        failure.group,
        f"{failure.error} ({failure.kept} of {failure.proxies} proxies keep what they had)",
    )


class MeshLoop:
    """Makes a wave whenever something changed; the newest state can be read at any time.

    A wave runs on the event loop, which has the view and everything derived from it for itself, in slices
    of SLICE_SECONDS; certificates are made, and problems looked for, in a thread. With `verify` each wave
    is compared with one from nothing.
    """

    def __init__(
        self,
        specification: Specification,
        providers: Iterable[EndpointProvider],
        keeper: CertificateKeeper,
        cache: SnapshotCache,
        translate: Translate,
        settings: MeshSettings,
        *,
        pace: Pace,
        clock: Callable[[], datetime],
        metrics: Metrics,
        on_state: Callable[[MeshState], None],
        verify: bool = False,
    ) -> None:
        self._specification = specification
        self._providers = tuple(providers)
        self._keeper = keeper
        self._cache = cache
        self._translate = translate
        self._settings = settings
        self._pace = pace
        self._clock = clock
        self._metrics = metrics
        self._on_state = on_state
        self._verify = verify
        self._changes = Changes()
        self._woken = asyncio.Event()
        self._following: Following | None = None
        self._known_problems: frozenset[Problem] = frozenset()
        self._found: tuple[Problem, ...] = ()
        self._lint_later = False
        self._unlinted = asyncio.Event()
        self.state = MeshState()

    def changed(self) -> None:
        """Note that some source changed; to be called on the event loop."""
        self._changes.note(time.monotonic())
        self._woken.set()

    async def run(self) -> None:
        """Make waves until cancelled."""
        while True:
            await self._due()
            await self.wave()

    async def renewing(self) -> None:
        """Ask for a wave whenever a certificate is due, or could not be issued before, until cancelled."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            if self._keeper.needs_work(self._clock()):
                self.changed()

    async def wave(self) -> None:
        """Make one wave now. Whatever fails is logged and shown, and leaves the mesh as it was."""
        began = time.monotonic()
        self._changes.take(began)
        inputs = read_inputs(self._specification, self._providers, self._settings)
        try:
            touched = await self._wave(inputs)
        except Exception as error:  # noqa: BLE001 - whatever it was, the mesh goes on and says so
            _log.exception("wave failed; the mesh stays as it was")
            self._following = None  # what it knew may be half a wave: the next one begins from nothing
            self._take(replace(self.state, problems=_with_failed_wave(inputs.problems, error)))
            return
        self._metrics.wave(time.monotonic() - began, published=touched is not None)

    async def _wave(self, inputs: Inputs) -> int | None:
        """Follow the inputs, publish, look for problems; return how many connected proxies are concerned."""
        if self._following is None:
            self._following = Following(self._translate, inputs.settings)
        following = self._following
        merging = following.follow(inputs)
        certifying = await self._certify(following)
        step = await in_slices(following.serving.steps(self.state.published, following.serving.touched()))
        touched = self._publish(step)
        published = step.after(self.state.published)
        proxies = following.proxies() if step.moved else self.state.proxies
        failing = map(failure_problem, published.failures)
        self._known_problems = frozenset((*inputs.problems, *merging, *certifying, *failing))
        self._take(MeshState(following.view, published, self._problems(), proxies))
        if self._lint_later:
            self._unlinted.set()
        else:
            await self._lint()
        if self._verify:
            self._verified(await asyncio.to_thread(verify, following.inputs(), self._translate, published))
        return touched

    async def linting(self) -> None:
        """Look for problems between objects after waves, not in them, until cancelled."""
        self._lint_later = True
        try:
            while True:
                await self._unlinted.wait()
                self._unlinted.clear()
                await self._lint()
                await asyncio.sleep(LINT_PAUSE)
        finally:
            self._lint_later = False

    async def _lint(self) -> None:
        if self._following is not None:
            self._found = await asyncio.to_thread(self._following.problems)
            if (problems := self._problems()) != self.state.problems:
                self._take(replace(self.state, problems=problems))

    def _problems(self) -> tuple[Problem, ...]:
        return tuple(sorted({*self._known_problems, *self._found}, key=problem_order))

    async def _certify(self, following: Following) -> tuple[Problem, ...]:
        """Have the certificates that are needed now made, in a thread: it signs and writes."""
        validity = following.view.config.service_certificate_validity
        needs = following.certificate_needs()
        update = await asyncio.to_thread(self._keeper.update, needs, validity, self._clock())
        following.certify(update, self._keeper.certificates)
        return update.problems

    def _verified(self, differences: tuple[str, ...]) -> None:
        """Say loudly where what is served is not what the same inputs come to from nothing."""
        self._metrics.verified(len(differences))
        for difference in differences:
            _log.error("what is served is not what its inputs come to", difference=difference)

    async def _due(self) -> None:
        """Return when the next wave should begin."""
        while True:
            due = self._changes.due(self._pace)
            wait = None if due is None else due - time.monotonic()
            if wait is not None and wait <= 0:
                return
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue
            self._woken.clear()

    def _publish(self, step: Step) -> int | None:
        """Publish what is new, if anything is; return how many connected proxies it concerns."""
        before = self.state.published.failed
        for failure in step.failed.values():
            if failure is not None and failure != before.get(GroupKey(failure.group)):
                self._metrics.group_failed()
                _log.error("group failed", group=failure.group, error=failure.error, kept=failure.kept)
        if not step:
            return None
        touched = self._cache.publish_changes(step.snapshots, step.members)
        _log.info(
            "snapshots published", groups=len(step.snapshots), proxies=len(step.members), touched=touched
        )
        return touched

    def _take(self, state: MeshState) -> None:
        own = set(self._specification.problems())  # the source has said these itself
        before = set(self.state.problems)
        for problem in state.problems:
            if problem not in before and problem not in own:
                _log_problem(problem)
        self.state = state
        self._on_state(state)


def _with_failed_wave(problems: tuple[Problem, ...], error: Exception) -> tuple[Problem, ...]:
    said = Problem("wave-failed", Severity.ERROR, Origin("catalog"), None, "", "", f"{error}")
    return tuple(sorted({*problems, said}, key=problem_order))


def _log_problem(problem: Problem) -> None:
    match problem.severity:
        case Severity.ERROR:
            say = _log.error
        case Severity.WARNING:
            say = _log.warning
        case Severity.INFO:
            say = _log.info
    say("problem", problem=str(problem))
