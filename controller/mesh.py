"""The loop from changes to snapshots: gather, compute in a thread, publish on the event loop."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog

from admin.metrics import Metrics
from catalog.identities import service_identities
from catalog.policy import proxy_policy
from catalog.problems import problems as catalog_problems
from catalog.view import MeshSettings, View
from controller.debounce import Changes, Pace
from controller.issuing import CertificateKeeper
from controller.wave import Failure, Published, Translate, compute
from mesh.endpoints import Inventory
from mesh.objects import ObjectKey, Origin, Problem, Severity, Sourced
from providers.contract import EndpointProvider
from providers.merge import merge
from xds.cache import SnapshotCache

RENEWAL_SECONDS: Final = 30.0
"""How often certificates are looked at; a wall clock that jumps is noticed within that."""

_log = structlog.get_logger("controller.mesh")


class Specification(Protocol):
    """Where the mesh's objects come from: a directory of manifests first."""

    def objects(self) -> Mapping[ObjectKey, Sourced]:
        """Return the objects in force."""

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a wave is computed from, taken at one moment."""

    objects: Mapping[ObjectKey, Sourced]
    inventories: tuple[tuple[str, Inventory], ...]
    problems: tuple[Problem, ...]
    settings: MeshSettings


@dataclass(frozen=True, slots=True)
class MeshState:
    """What the newest wave came to."""

    view: View | None = None
    published: Published = field(default_factory=Published)
    problems: tuple[Problem, ...] = ()


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


def run_wave(
    inputs: Inputs, before: MeshState, keeper: CertificateKeeper, translate: Translate, now: datetime
) -> MeshState:
    """Compute the next state; raise only what concerns the whole mesh (see View.build).

    Blocks for as long as keys are made and resources encoded: to be run in a thread.
    """
    inventory, merging = merge(inputs.inventories)
    view = View.build(inputs.objects, inventory, inputs.settings)
    material, certifying = keeper.ensure(
        service_identities(view), view.config.service_certificate_validity, now
    )
    published = compute(view, material, before.published, proxy_policy, translate)
    found = {*inputs.problems, *merging, *catalog_problems(view), *certifying}
    found.update(failure_problem(failure) for failure in published.failures)
    return MeshState(view, published, tuple(sorted(found, key=problem_order)))


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
    """Makes a wave whenever something changed; the newest state can be read at any time."""

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
        self._changes = Changes()
        self._woken = asyncio.Event()
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
            state = await asyncio.to_thread(
                run_wave, inputs, self.state, self._keeper, self._translate, self._clock()
            )
        except Exception as error:  # noqa: BLE001 - whatever it was, the mesh goes on and says so
            _log.exception("wave failed; the mesh stays as it was")
            self._take(replace(self.state, problems=_with_failed_wave(inputs.problems, error)))
            return
        touched = self._publish(state)
        self._metrics.wave(time.monotonic() - began, published=touched is not None)

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

    def _publish(self, state: MeshState) -> int | None:
        """Publish a state if it is another one; return how many connected proxies it concerns."""
        before, after = self.state.published, state.published
        for failure in after.failures:
            if failure not in before.failures:
                self._metrics.group_failed()
                _log.error("group failed", group=failure.group, error=failure.error, kept=failure.kept)
        touched = None
        if (after.snapshots, after.members) != (before.snapshots, before.members):
            touched = self._cache.publish(after.snapshots, after.members)
            _log.info(
                "snapshots published",
                groups=len(after.snapshots),
                proxies=len(after.members),
                touched=touched,
            )
        self._take(state)
        return touched

    def _take(self, state: MeshState) -> None:
        own = set(self._specification.problems())  # the source has said these itself
        for problem in state.problems:
            if problem not in self.state.problems and problem not in own:
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
