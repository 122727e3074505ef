"""The loop from changes to snapshots: gather, follow, publish what was touched."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import structlog

from catalog.store.view import View
from delivery.certificates import ServiceCertificates
from delivery.gathering import Gathering
from delivery.linting import Linting
from delivery.meters import WaveMeter
from delivery.model import Model
from delivery.problems import AllProblems, failed_wave, failure_problem, log_changes
from delivery.publishing import Publishing
from delivery.quarantine.problems import Rejections
from delivery.snapshots.published import Published
from delivery.time_slices import Slices
from delivery.verifying import Verification
from delivery.wave import Wave
from mesh.identity import ProxyName
from mesh.problems import Problems

_log = structlog.get_logger("delivery.loop")


@dataclass(frozen=True, slots=True)
class MeshState:
    """What the newest wave came to. The view is the loop's own, and changes with the next wave.

    `proxies` are those that should be here; the same tuple as long as none comes or goes.
    """

    view: View | None = None
    published: Published = field(default_factory=Published)
    problems: Problems = ()
    proxies: tuple[ProxyName, ...] = ()


class Loop:
    """Makes a wave whenever something changed; the newest state can be read at any time.

    A wave runs on the event loop, which has the view and everything derived from it for itself, in slices
    (see delivery.time_slices); certificates are made in a thread. With a `verification` each wave is compared
    with one from nothing.

    `model` is what is followed, None before the first wave and after one that failed. `doing` says what a
    wave is at, for whoever finds the event loop held.
    """

    def __init__(
        self,
        gathering: Gathering,
        new_model: Callable[[], Model],
        certificates: ServiceCertificates,
        publishing: Publishing,
        *,
        clock: Callable[[], datetime],
        meter: WaveMeter,
        on_state: Callable[[MeshState], None],
        verification: Verification | None = None,
    ) -> None:
        self._gathering = gathering
        self._new_model = new_model
        self._certificates = certificates
        self._publishing = publishing
        self._clock = clock
        self._meter = meter
        self._on_state = on_state
        self._verification = verification
        self._rejections = Rejections()
        self._problems = AllProblems()
        self.linting = Linting(lambda: self.model, self._found)
        self.model: Model | None = None
        self.doing = ""
        self.state = MeshState()

    async def run(self) -> None:
        """Make waves until cancelled."""
        while True:
            await self._gathering.due()
            await self.wave()
            await asyncio.sleep(0)  # the next one may be due already: its slices begin with it

    async def wave(self) -> None:
        """Make one wave now. Whatever fails is logged and shown, and leaves the mesh as it was."""
        began = time.monotonic()
        wave = Wave(0, (), 0, self._gathering.take(began), self._clock())
        try:
            self._gathering.look()
            touched = await self._wave(wave, Slices())
        except Exception as error:  # noqa: BLE001 - whatever it was, the mesh goes on and says so
            _log.exception("wave failed; the mesh stays as it was")
            self.model = None  # what it knew may be half a wave: the next one begins from nothing
            said, published = (
                failed_wave(self._gathering.sources.problems(), error),
                self._publishing.published,
            )
            self._take(replace(self.state, published=published, problems=said))
            return
        self.doing = ""
        self._meter.wave(time.monotonic() - began, published=touched is not None)

    async def _wave(self, wave: Wave, slices: Slices) -> int | None:
        """Follow the sources, publish, look for problems; return how many connected proxies are concerned."""
        if self.model is None:
            self.model = self._new_model()
        model = self.model
        work = model.work()
        self.doing = "following the sources"
        sources, admitted = self._gathering.sources, self._gathering.admitted
        said_of_inputs = sources.problems()
        await slices.result(model.follow(sources.merged, admitted))
        self.doing = "certificates"
        certifying = await self._certify(model, slices)
        self.doing = "computing"
        serving = model.serving
        step = await slices.result(serving.steps(self._publishing.published, serving.touched()))
        self.doing = "publishing"
        named, more = model.causes.take()
        touched = await self._publishing.publish(replace(wave, causes=named, more=more), step, slices)
        published = self._publishing.published
        proxies = model.proxies() if step.moved else self.state.proxies
        failing = (*map(failure_problem, published.failures), *model.unplaced())
        rejected = self._rejections.problems(model.serving, self._publishing.quarantine.findings.rejected())
        said = self._problems.update(
            inputs=said_of_inputs,
            certifying=certifying,
            failing=failing,
            rejected=rejected,
        )
        self._take(MeshState(model.view, published, said, proxies))
        self._meter.wave_work(**asdict(model.work() - work), touched=touched or 0)
        await self.linting.after_wave()
        if self._verification is not None:
            await self._verification.after_wave(model, self._publishing)
        return touched

    async def _certify(self, model: Model, slices: Slices) -> Problems:
        """Have the certificates that are needed now made, in a thread: it signs and writes."""
        validity, now = model.view.config.service_certificate_validity, self._clock()
        needs = await slices.result(model.certificate_needs())
        if model.certified and not self._certificates.has_work(needs, validity, now):
            return ()
        update = await asyncio.to_thread(self._certificates.update, needs, validity, now)
        await slices.result(model.certify(update, self._certificates.certificates))
        return update.problems

    def _found(self, found: Problems) -> None:
        """Take the problems between objects."""
        said = self._problems.update(found=found)
        if said is not self.state.problems:
            self._take(replace(self.state, problems=said))

    def _take(self, state: MeshState) -> None:
        log_changes(state.problems, self.state.problems, self._gathering.sources.logged())
        self.state = state
        self._on_state(state)
