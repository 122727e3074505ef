"""The loop: turn changes of the sources into published snapshots, wave by wave.

A wave takes over the changes of all sources, has the certificates issued, computes the resources of the
groups of proxies that the changes touch, and publishes their snapshots. Between waves, newly connected
proxies are served in batches of ATTENDED groups, so a storm of connections delays neither the first of
them nor a wave.

Only this loop changes the model. Everything derived from the model is therefore computed on the event loop,
without locks, but in slices (`timing.time_slices`) so that streams are served meanwhile. Signing and writing
of certificates runs in a thread. An exception ends the wave and not the loop: the snapshots in force stay,
and the next wave, after AGAIN_SECONDS at the latest, starts with a new model, because the old one may have
applied half of the changes.

Read next: `model` (the state that a wave changes), `publisher` (the last step), `timing.debounce` (when a
wave begins).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Final

import structlog

from catalog.lint.problems import Looked
from catalog.relations.groups import ProxyGroup
from catalog.store.view import View
from meshwright.delivery.certificates.certificates import Needs, ServiceCertificates
from meshwright.delivery.incremental_lint import IncrementalLint
from meshwright.delivery.mesh_sources import MeshSources
from meshwright.delivery.meters import WaveMeter
from meshwright.delivery.model import Model
from meshwright.delivery.presence import Presence
from meshwright.delivery.problems import AllProblems, wave_problem
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.problems import Rejections
from meshwright.delivery.self_check import Verification
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.delivery.timing.time_slices import Slices
from meshwright.delivery.wave import Wave
from meshwright.mesh.identity import ProxyName, ServiceIdentity, SidecarKey
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.values.picture import Picture

ATTENDED: Final = 16
"""Number of groups of newly connected proxies that are computed and published in one batch."""

AGAIN_SECONDS: Final = 30.0
"""Seconds after which a failed wave is repeated, because no source reports its changes a second time."""

_log = structlog.get_logger("delivery.loop")


@dataclass(frozen=True, slots=True)
class MeshState:
    """Result of the newest wave.

    `view` and `all_problems` are the loop's own objects, and change with the next wave. `proxies` are the
    expected proxies by sidecar; the same object until one is added or removed.
    """

    view: View | None = None
    published: PublishedSnapshots = field(default_factory=PublishedSnapshots)
    all_problems: AllProblems = field(default_factory=AllProblems)
    proxies: Picture[SidecarKey, ProxyName] = field(default_factory=Picture)

    @property
    def problems(self) -> Problems:
        """All current problems, sorted, each once."""
        return self.all_problems.all()


class Loop:
    """Loop that makes a wave after changes; `state` can be read at any time on the event loop.

    `model` is the current model, or `None` before the first wave and after a failed one. `doing` names the
    present step of a wave, for reports of a blocked event loop, for example "computing". `shared` returns the
    problems of identities that several proxies use. With a `verification` each wave is compared with a
    computation from scratch.
    """

    def __init__(
        self,
        gathering: MeshSources,
        new_model: Callable[[], Model],
        certificates: ServiceCertificates,
        publishing: Publisher,
        *,
        clock: Callable[[], datetime],
        meter: WaveMeter,
        on_state: Callable[[MeshState], None],
        presence: Presence,
        verification: Verification | None = None,
        shared: Callable[[View], Problems] = lambda _: (),
    ) -> None:
        self._shared = shared
        self._gathering = gathering
        self._new_model = new_model
        self._certificates = certificates
        self._publishing = publishing
        self._clock = clock
        self._meter = meter
        self._on_state = on_state
        self._presence = presence
        self._verification = verification
        self._turn = asyncio.Lock()  # the model belongs to one wave or batch at a time
        self._again: asyncio.TimerHandle | None = None
        self._rejections = Rejections()
        self._problems = AllProblems()
        self.linting = IncrementalLint(lambda: self.model, self._report_lint, clock=clock)
        self.model: Model | None = None
        self.doing = ""
        self.state = MeshState(all_problems=self._problems)

    async def run(self) -> None:
        """Make a wave whenever changes of the sources are due, until cancelled."""
        while True:
            await self._gathering.due()
            await self.wave()
            await asyncio.sleep(
                0
            )  # the next wave may be due already; its time slice must begin after a turn of the loop

    async def attending(self) -> None:
        """Serve connected proxies and drop state of disconnected ones, in batches, until cancelled."""
        while True:
            await self._presence.due()
            await self.attend()

    async def wave(self) -> None:
        """Make one wave now. An exception is logged and reported, and the snapshots in force stay."""
        async with self._turn:
            is_done = await self._guarded(self._make())
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if not is_done:
            self._again = asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._gathering.repeat)

    async def attend(self) -> None:
        """Publish snapshots for newly connected proxies, and drop cached state of proxies that disconnected.

        Works in batches: a proxy does not wait for the batches of others, and a wave that is due runs between
        two batches. The new snapshots have no wave as their cause, as if the proxies had been connected
        before.
        """
        while True:
            async with self._turn:
                if (model := self.model) is None:
                    self._presence.here()  # clears the notification: the wave below serves them
                    break
                if not await self._guarded(self._attend(model, Slices())) and self.model is model:
                    return
        self._gathering.changed()  # after a failure, a wave starts with a new model and all connected proxies

    async def _guarded(self, work: Coroutine[object, object, bool]) -> bool:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - errors are reported; the last snapshots stay in force
            problem = wave_problem(error)
            _log.exception(
                "wave failed; the last published configuration stays in force",
                code=problem.code,
                doing=self.doing,
            )
            self.model = None  # it may have applied half of the wave, so the next wave starts from scratch
            self._problems.forget()
            self._report_sources()
            self._problems.report("wave", None, (problem,))
            self._set_state(replace(self.state, published=self._publishing.published))
            return False
        finally:
            self.doing = ""

    async def _make(self) -> bool:
        began = time.monotonic()
        wave = Wave(0, (), 0, self._gathering.take(began), began, self._clock())
        # Counts the changes, and reads admissions and taps for this wave.
        self._gathering.look()
        touched = await self._wave(wave, Slices())
        self._meter.wave(time.monotonic() - began, published=touched is not None)
        return True

    async def _wave(self, wave: Wave, slices: Slices) -> int | None:
        """Apply the sources' changes, and publish; return the number of connected proxies concerned.

        The result is `None` if nothing was published.
        """
        if self.model is None:
            self.model = self._new_model()
        model = self.model
        work = model.work()
        self.doing = "following the sources"
        sources, admissions = self._gathering.sources, self._gathering.admissions
        self._report_sources()
        await slices.result(model.attend(self._presence.here()))
        await slices.result(model.follow(sources.merged, admissions, self._gathering.taps))
        groups = model.serving.touched()
        certifying = await self._certify(model, await slices.result(model.certificate_needs(groups)), slices)
        # New certificates and roots touch further groups.
        groups = tuple(dict.fromkeys((*groups, *model.serving.touched())))
        step = await self._computed(model, groups, slices)
        self.doing = "publishing"
        # Only now, because issued certificates add causes during the wave.
        named, more = model.causes.take()
        touched = await self._publishing.publish(replace(wave, causes=named, more=more), step, slices)
        self._gathering.concerned(touched or 0)
        self._problems.report("wave", None, ())
        self._problems.report("certificates", None, certifying)
        self._report(model, step)
        self._meter.wave_work(**asdict(model.work() - work), touched=touched or 0)
        await self.linting.after_wave()
        if self._verification is not None:
            await self._verification.after_wave(model, self._publishing)
        return touched

    async def _attend(self, model: Model, slices: Slices) -> bool:
        """Serve one batch of connected and disconnected proxies; return False if there were none."""
        work = model.work()
        self.doing = "serving new proxies"
        await slices.result(model.attend(self._presence.here()))
        groups = model.serving.arrivals(ATTENDED)
        if not groups:
            if self._verification is not None and model.serving.is_current:
                await self._verification.after_wave(model, self._publishing)
            return False
        if needs := await slices.result(model.certificate_needs(groups)):
            self._problems.report(
                "certificates", None, await self._certify(model, needs, slices, unsaid=needs)
            )
        step = await self._computed(model, groups, slices)
        self._publishing.attend(step)
        self._report(model, step)
        self._meter.wave_work(**asdict(model.work() - work), touched=0)
        return True

    async def _computed(self, model: Model, groups: Iterable[ProxyGroup], slices: Slices) -> Step:
        self.doing = "computing"
        return await slices.result(model.serving.steps(self._publishing.published, groups))

    async def _certify(
        self, model: Model, needs: Needs, slices: Slices, unsaid: Collection[ServiceIdentity] = ()
    ) -> Problems:
        """Issue the certificates needed now, in a thread, because signing and writing take time.

        With `unsaid`, changed roots and a changed certificate of an identity outside it request a wave, which
        serves them to the other proxies and names them as its cause.
        """
        self.doing = "certificates"
        validity, now = model.view.config.service_certificate_validity, self._clock()
        if model.certified and not self._certificates.has_work(needs, validity, now):
            return self._certificates.problems
        update = await asyncio.to_thread(self._certificates.update, needs, validity, now)
        # The update counts as done from here on, so nothing else would notice what it has changed for others.
        is_for_others = update.trust_bundle != model.trust_bundle or any(
            identity not in unsaid for identity in update.changed
        )
        await slices.result(model.certify(update, self._certificates.certificates, unsaid))
        if unsaid and is_for_others:
            self._gathering.changed()
        return update.problems

    def _report_sources(self) -> None:
        sources = self._gathering.sources
        self._problems.of_sources({source.name: source.problems() for source in sources.all})
        self._problems.report("between sources", None, sources.merged.problems)

    def _report(self, model: Model, step: Step) -> None:
        """Record the problems found in a wave or batch, and publish the new state."""
        rejected = self._rejections.problems(model.serving, self._publishing.quarantine.findings.rejected())
        self._problems.failed(step.failed)
        self._problems.report("places", None, model.unplaced())
        self._problems.report("proxies", None, rejected)
        self._problems.report("identities", None, self._shared(model.view))
        published, proxies = self._publishing.published, model.expected.proxies()
        self._set_state(MeshState(model.view, published, self._problems, proxies))

    def _report_lint(self, result: Sequence[Looked]) -> None:
        """Record problems between objects."""
        self._problems.report_lint(result)
        if self._problems.log():
            self._on_state(self.state)

    def _set_state(self, state: MeshState) -> None:
        self._problems.log()
        self.state = state
        self._on_state(state)
