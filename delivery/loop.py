"""The loop from changes to snapshots: gather, follow, publish what was touched."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import structlog

from catalog.lint.problems import Looked
from catalog.store.view import View
from delivery.certificates import ServiceCertificates
from delivery.gathering import Gathering
from delivery.linting import Linting
from delivery.meters import WaveMeter
from delivery.model import Model
from delivery.problems import AllProblems, wave_problem
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

    So do the problems. `proxies` are those that should be here; the same tuple as long as none comes or
    goes.
    """

    view: View | None = None
    published: Published = field(default_factory=Published)
    said: AllProblems = field(default_factory=AllProblems)
    proxies: tuple[ProxyName, ...] = ()

    @property
    def problems(self) -> Problems:
        """What is wrong now, sorted, each once."""
        return self.said.all()


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
        self.state = MeshState(said=self._problems)

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
            self._problems.forget()
            self._say_inputs()
            self._problems.say("wave", None, (wave_problem(error),))
            self._take(replace(self.state, published=self._publishing.published))
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
        self._say_inputs()
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
        rejected = self._rejections.problems(model.serving, self._publishing.quarantine.findings.rejected())
        self._problems.say("wave", None, ())
        self._problems.say("certificates", None, certifying)
        self._problems.failed(step.failed)
        self._problems.say("places", None, model.unplaced())
        self._problems.say("proxies", None, rejected)
        self._take(MeshState(model.view, published, self._problems, proxies))
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

    def _say_inputs(self) -> None:
        sources = self._gathering.sources
        self._problems.of_sources({each.name: each.problems() for each in sources.all})
        self._problems.say("between sources", None, sources.merged.problems)

    def _found(self, found: Sequence[Looked]) -> None:
        """Take the problems between objects."""
        self._problems.found(found)
        if self._problems.log():
            self._on_state(self.state)

    def _take(self, state: MeshState) -> None:
        self._problems.log()
        self.state = state
        self._on_state(state)
