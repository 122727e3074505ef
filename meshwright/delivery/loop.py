"""The loop from changes to snapshots: gather, follow, publish what was touched."""

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
"""How many groups of those who came are made and published together."""

_log = structlog.get_logger("delivery.loop")


@dataclass(frozen=True, slots=True)
class MeshState:
    """What the newest wave came to. The view is the loop's own, and changes with the next wave.

    So do the problems. `proxies` are those that should be here, by sidecar; the same picture as long as none
    comes or goes.
    """

    view: View | None = None
    published: PublishedSnapshots = field(default_factory=PublishedSnapshots)
    said: AllProblems = field(default_factory=AllProblems)
    proxies: Picture[SidecarKey, ProxyName] = field(default_factory=Picture)

    @property
    def problems(self) -> Problems:
        """What is wrong now, sorted, each once."""
        return self.said.all()


class Loop:
    """Makes a wave whenever something changed; the newest state can be read at any time.

    Made for who is here: a wave looks at the groups that are wanted, and whoever comes between two waves is
    attended to at once, ATTENDED groups at a time.

    A wave runs on the event loop, which has the view and everything derived from it for itself, in slices
    (see delivery.time_slices); certificates are made in a thread. With a `verification` each wave is compared
    with one from nothing.

    `model` is what is followed, None before the first wave and after one that failed. `doing` says what a
    wave is at, for whoever finds the event loop held. `shared` returns the problems of identities that
    several proxies use.
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
        self._turn = asyncio.Lock()  # one at a time has the model
        self._rejections = Rejections()
        self._problems = AllProblems()
        self.linting = IncrementalLint(lambda: self.model, self._found)
        self.model: Model | None = None
        self.doing = ""
        self.state = MeshState(said=self._problems)

    async def run(self) -> None:
        """Make waves until cancelled."""
        while True:
            await self._gathering.due()
            await self.wave()
            await asyncio.sleep(0)  # the next one may be due already: its slices begin with it

    async def attending(self) -> None:
        """Attend to who comes and goes, until cancelled."""
        while True:
            await self._presence.due()
            await self.attend()

    async def wave(self) -> None:
        """Make one wave now. Whatever fails is logged and shown, and leaves the mesh as it was."""
        async with self._turn:
            await self._guarded(self._make())

    async def attend(self) -> None:
        """Have those served who came, and let go what was kept for those who are gone.

        What is made for them is published in parts: nobody waits for all that is made for others, and a wave
        that is due goes between two parts. No wave is its cause: it is as if it had always been there.
        """
        while True:
            async with self._turn:
                if (model := self.model) is None:
                    self._presence.here()  # taken note of: the wave that is asked for serves them
                    break
                if not await self._guarded(self._attend(model, Slices())) and self.model is model:
                    return
        self._gathering.changed()  # something failed: a wave begins anew, with all who are here

    async def _guarded(self, work: Coroutine[object, object, bool]) -> bool:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - whatever it was, the mesh goes on and says so
            said = wave_problem(error)
            _log.exception("wave failed; the mesh stays as it was", code=said.code, doing=self.doing)
            self.model = None  # what it knew may be half a wave: the next one begins from nothing
            self._problems.forget()
            self._say_inputs()
            self._problems.say("wave", None, (said,))
            self._take(replace(self.state, published=self._publishing.published))
            return False
        finally:
            self.doing = ""

    async def _make(self) -> bool:
        began = time.monotonic()
        wave = Wave(0, (), 0, self._gathering.take(began), began, self._clock())
        self._gathering.look()
        touched = await self._wave(wave, Slices())
        self._meter.wave(time.monotonic() - began, published=touched is not None)
        return True

    async def _wave(self, wave: Wave, slices: Slices) -> int | None:
        """Follow the sources, publish, look for problems; return how many connected proxies are concerned."""
        if self.model is None:
            self.model = self._new_model()
        model = self.model
        work = model.work()
        self.doing = "following the sources"
        sources, admissions = self._gathering.sources, self._gathering.admissions
        self._say_inputs()
        await slices.result(model.attend(self._presence.here()))
        await slices.result(model.follow(sources.merged, admissions, self._gathering.taps))
        groups = model.serving.touched()
        certifying = await self._certify(model, await slices.result(model.certificate_needs(groups)), slices)
        # Other certificates and roots than before touch groups that were there already.
        groups = tuple(dict.fromkeys((*groups, *model.serving.touched())))
        step = await self._computed(model, groups, slices)
        self.doing = "publishing"
        named, more = model.causes.take()
        touched = await self._publishing.publish(replace(wave, causes=named, more=more), step, slices)
        self._gathering.concerned(touched or 0)
        self._problems.say("wave", None, ())
        self._problems.say("certificates", None, certifying)
        self._say(model, step)
        self._meter.wave_work(**asdict(model.work() - work), touched=touched or 0)
        await self.linting.after_wave()
        if self._verification is not None:
            await self._verification.after_wave(model, self._publishing)
        return touched

    async def _attend(self, model: Model, slices: Slices) -> bool:
        """Attend to some of those who came and went; say whether there were any."""
        work = model.work()
        self.doing = "attending to who came"
        await slices.result(model.attend(self._presence.here()))
        groups = model.serving.arrivals(ATTENDED)
        if not groups:
            if self._verification is not None and model.serving.is_current:
                await self._verification.after_wave(model, self._publishing)
            return False
        if needs := await slices.result(model.certificate_needs(groups)):
            self._problems.say("certificates", None, await self._certify(model, needs, slices, unsaid=needs))
        step = await self._computed(model, groups, slices)
        self._publishing.attend(step)
        self._say(model, step)
        self._meter.wave_work(**asdict(model.work() - work), touched=0)
        return True

    async def _computed(self, model: Model, groups: Iterable[ProxyGroup], slices: Slices) -> Step:
        self.doing = "computing"
        return await slices.result(model.serving.steps(self._publishing.published, groups))

    async def _certify(
        self, model: Model, needs: Needs, slices: Slices, unsaid: Collection[ServiceIdentity] = ()
    ) -> Problems:
        """Have the certificates that are needed now made, in a thread: it signs and writes.

        Those of identities that are not `unsaid` are causes of a wave, which serves them.
        """
        self.doing = "certificates"
        validity, now = model.view.config.service_certificate_validity, self._clock()
        if model.certified and not self._certificates.has_work(needs, validity, now):
            return self._certificates.problems
        update = await asyncio.to_thread(self._certificates.update, needs, validity, now)
        await slices.result(model.certify(update, self._certificates.certificates, unsaid))
        if unsaid and any(identity not in unsaid for identity in update.changed):
            self._gathering.changed()
        return update.problems

    def _say_inputs(self) -> None:
        sources = self._gathering.sources
        self._problems.of_sources({each.name: each.problems() for each in sources.all})
        self._problems.say("between sources", None, sources.merged.problems)

    def _say(self, model: Model, step: Step) -> None:
        """Take what was found with what is published."""
        rejected = self._rejections.problems(model.serving, self._publishing.quarantine.findings.rejected())
        self._problems.failed(step.failed)
        self._problems.say("places", None, model.unplaced())
        self._problems.say("proxies", None, rejected)
        self._problems.say("identities", None, self._shared(model.view))
        published, proxies = self._publishing.published, model.expected.proxies()
        self._take(MeshState(model.view, published, self._problems, proxies))

    def _found(self, found: Sequence[Looked]) -> None:
        """Take the problems between objects."""
        self._problems.found(found)
        if self._problems.log():
            self._on_state(self.state)

    def _take(self, state: MeshState) -> None:
        self._problems.log()
        self.state = state
        self._on_state(state)
