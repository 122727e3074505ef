"""The loop from changes to snapshots: gather, follow, publish what was touched."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Final

import structlog

from catalog.lint.problems import nothing
from catalog.policy.provenance import MadeFrom
from catalog.store.view import MeshSettings, View
from delivery.certificates import ServiceCertificates
from delivery.debounce import Debounce, Matter, Pace
from delivery.events import Counts, Events, Specification, matter
from delivery.inputs import Inputs, read_inputs
from delivery.meters import WaveMeter
from delivery.model import Model
from delivery.problems import AllProblems, failed_wave, failure_problem, log_new
from delivery.publishing import OnPublished, Publishing, nobody
from delivery.quarantine.left_out import LeftOut
from delivery.quarantine.problems import Rejections, parts_left_out
from delivery.quarantine.quarantine import Quarantine
from delivery.quarantine.record import Moment
from delivery.quarantine.verdicts import Verdict
from delivery.snapshots.published import Published, Step
from delivery.snapshots.serving import Translate
from delivery.time_slices import Slices
from delivery.verifying import verify
from delivery.wave import Wave, rejection_cause
from mesh.identity import ProxyName
from mesh.objects import ObjectKey, Problem
from mesh.picture import Picture
from providers.contract import EndpointProvider
from xds.cache import NodeKey, SnapshotCache
from xds.protocol.resource import Reference, Resource, ResourceName, TypeUrl
from xds.protocol.wire import Rejection, Response

RENEWAL_SECONDS: Final = 30.0
"""How often certificates are looked at; a wall clock that jumps is noticed within that."""

_log = structlog.get_logger("delivery.loop")


@dataclass(frozen=True, slots=True)
class MeshState:
    """What the newest wave came to. The view is the loop's own, and changes with the next wave.

    `proxies` are those that should be here; the same tuple as long as none comes or goes.
    """

    view: View | None = None
    published: Published = field(default_factory=Published)
    problems: tuple[Problem, ...] = ()
    proxies: tuple[ProxyName, ...] = ()


def _left_out(_: Reference) -> Resource | None:
    """Leave out what is rejected and was never good."""
    return None


def _forgotten(_: tuple[Verdict, ...]) -> None:
    """Keep no verdicts."""


class Loop:
    """Makes a wave whenever something changed; the newest state can be read at any time.

    A wave runs on the event loop, which has the view and everything derived from it for itself, in slices
    (see delivery.time_slices); certificates are made in a thread. With `verify` each wave is compared
    with one from nothing. `lint` finds problems that the catalog knows nothing of (see
    catalog.lint.problems.Problems); `quarantine` decides about rejections, and `keep` writes down what it
    found for certain, in a thread.

    `doing` says what a wave is at, for whoever finds the event loop held; endpoints are gathered at
    `endpoint_pace`, at the general one without.

    `on_published` is told of each wave that published something (see delivery.publishing.Publishing).
    """

    def __init__(
        self,
        specification: Specification,
        providers: Iterable[EndpointProvider],
        keeper: ServiceCertificates,
        cache: SnapshotCache,
        translate: Translate,
        settings: MeshSettings,
        *,
        pace: Pace,
        endpoint_pace: Pace | None = None,
        clock: Callable[[], datetime],
        metrics: WaveMeter,
        on_state: Callable[[MeshState], None],
        on_published: OnPublished = nobody,
        admitted: Callable[[], Mapping[ProxyName, ProxyName]] = Picture,
        verify: bool = False,
        lint: Callable[[View], tuple[Problem, ...]] = nothing,
        quarantine: Quarantine | None = None,
        keep: Callable[[tuple[Verdict, ...]], None] = _forgotten,
    ) -> None:
        self._specification = specification
        self._providers = tuple(providers)
        self._keeper = keeper
        self._translate = translate
        self._settings = settings
        self._events = Events(specification, self._providers)
        self.doing = ""
        self._clock = clock
        self._metrics = metrics
        self._on_state = on_state
        self._admitted = admitted
        self._verify = verify
        self._find_problems = lint
        self._changes = Debounce({Matter.POLICY: pace, Matter.ENDPOINTS: endpoint_pace or pace})
        self.quarantine = quarantine or Quarantine(_left_out)
        self._keep = keep
        self._withheld, self._judged = asyncio.Event(), asyncio.Event()
        self._publishing = Publishing(cache, self.quarantine, metrics, on_published)
        self._rejections = Rejections()
        self._following: Model | None = None
        self._problems = AllProblems()
        self._lint_later = False
        self._unlinted = asyncio.Event()
        self.state = MeshState()

    def changed(self) -> None:
        """Note that some source changed; to be called on the event loop."""
        self._changes.note(matter(self._noticed()))

    def _noticed(self) -> Counts:
        """Count what sources brought since the last time."""
        events = self._events.take(self._admitted())
        for (source, kind), count in events.items():
            self._metrics.event(source, kind, count)
        return events

    def objects_behind(self, node: NodeKey, type_url: TypeUrl, name: ResourceName) -> tuple[MadeFrom, ...]:
        """Return the inputs that a proxy's resource was made from, sorted; none if there is no such."""
        if self._following is None:
            return ()
        serving = self._following.serving
        group = serving.group(node)
        return () if group is None else serving.objects_behind(group, type_url, name)

    def refusal(self, node: NodeKey, type_url: TypeUrl, name: ResourceName) -> str:
        """Return why a proxy rejected a resource: its words, then the object at fault; empty if unknown."""
        found = self.quarantine.rejections_of(node, (type_url, name))
        if self._following is None or not found:
            return ""
        return self._rejections.clause(self._following.serving, found[0])

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy that are not in force for some proxies."""
        if self._following is None:
            return ()
        return parts_left_out(self._following.serving, self.quarantine.units_out())

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        changed: frozenset[ObjectKey] = frozenset(),
    ) -> None:
        """Take a proxy's answer; a proxy that rejects something is served without it at once.

        `changed` are the objects that led to what it rejects.
        """
        moment = Moment(time.monotonic(), self._clock())
        self._withhold(self.quarantine.answered(node, response, rejection, moment, changed), node)

    def opened(self, node: NodeKey) -> None:
        """Take note of a proxy's new stream: it is offered again what was rejected as a resource."""
        self._withhold(self.quarantine.opened(node), node)

    def retry(self, node: NodeKey) -> tuple[Reference, ...]:
        """Offer a proxy again what it rejected; return in which resources that is, sorted."""
        rejected = self.quarantine.rejected_by(node)
        self._withhold(self.quarantine.retry(node), node)
        return rejected

    async def retrying(self) -> None:
        """Offer again what is withheld whenever that is due, until cancelled."""
        while True:
            due = self.quarantine.due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if due is None else max(0.0, due - time.monotonic())):
                    await self._withheld.wait()
            self._withheld.clear()
            if due is not None and due <= (now := time.monotonic()):
                self._withhold(self.quarantine.on_time(now), "proxies")

    async def keeping(self) -> None:
        """Write down what was found at fault for certain whenever that is other, until cancelled."""
        kept = self.quarantine.verdicts()
        while True:
            await self._judged.wait()
            self._judged.clear()
            if (found := self.quarantine.verdicts()) != kept:
                kept = found
                await asyncio.to_thread(self._keep, found)

    def _withhold(self, step: Step | None, who: str) -> None:
        if step is None:
            return
        if step:
            wave = Wave(0, (rejection_cause(who),), 0, time.monotonic(), self._clock())
            self._publishing.withhold(wave, step)
        self._withheld.set()
        self._judged.set()
        self.changed()  # the next wave says what is rejected

    async def run(self) -> None:
        """Make waves until cancelled."""
        while True:
            await self._changes.due()
            await self.wave()
            await asyncio.sleep(0)  # the next one may be due already: its slices begin with it

    async def renewing(self) -> None:
        """Ask for a wave whenever a certificate is due, or could not be issued before, until cancelled."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            if self._keeper.needs_work(self._clock()):
                self.changed()

    async def wave(self) -> None:
        """Make one wave now. Whatever fails is logged and shown, and leaves the mesh as it was."""
        began = time.monotonic()
        wave = Wave(0, (), 0, self._changes.take(began), self._clock())
        inputs = read_inputs(self._specification, self._providers, self._settings, self._admitted())
        try:
            self._noticed()
            touched = await self._wave(inputs, wave, Slices())
        except Exception as error:  # noqa: BLE001 - whatever it was, the mesh goes on and says so
            _log.exception("wave failed; the mesh stays as it was")
            self._following = None  # what it knew may be half a wave: the next one begins from nothing
            said, published = failed_wave(inputs.problems, error), self._publishing.published
            self._take(replace(self.state, published=published, problems=said))
            return
        self.doing = ""
        self._metrics.wave(time.monotonic() - began, published=touched is not None)

    async def _wave(self, inputs: Inputs, wave: Wave, slices: Slices) -> int | None:
        """Follow the inputs, publish, look for problems; return how many connected proxies are concerned."""
        if self._following is None:
            self._following = Model(self._translate, inputs.settings, self._find_problems)
        following = self._following
        work = following.work()
        self.doing = "following the sources"
        merging = await slices.result(following.follow(inputs))
        self.doing = "certificates"
        certifying = await self._certify(following, slices)
        self.doing = "computing"
        serving = following.serving
        step = await slices.result(serving.steps(self._publishing.published, serving.touched()))
        self.doing = "publishing"
        named, more = following.causes.take()
        touched = await self._publishing.publish(replace(wave, causes=named, more=more), step, slices)
        self._judged.set()
        published = self._publishing.published
        proxies = following.proxies() if step.moved else self.state.proxies
        failing = (*map(failure_problem, published.failures), *following.unplaced())
        rejected = self._rejections.problems(following.serving, self.quarantine.rejected())
        said = self._problems.update(
            inputs=inputs.problems,
            merging=merging,
            certifying=certifying,
            failing=failing,
            rejected=rejected,
        )
        self._take(MeshState(following.view, published, said, proxies))
        self._metrics.wave_work(**asdict(following.work() - work), touched=touched or 0)
        if self._lint_later:
            self._unlinted.set()
        else:
            await self._lint()
        if self._verify:
            served, refusals = self.quarantine.served(published), self.quarantine.refusals()
            inputs_now = following.inputs()
            self._verified(await asyncio.to_thread(verify, inputs_now, self._translate, served, refusals))
        return touched

    async def linting(self) -> None:
        """Look for problems between objects after waves, not in them, until cancelled."""
        self._lint_later = True
        try:
            if self._following is not None:
                self._following.problems.renew()
                self._unlinted.set()
            while True:
                await self._unlinted.wait()
                self._unlinted.clear()
                await self._lint()
        finally:
            self._lint_later = False

    async def _lint(self) -> None:
        """Look again at what changes concern; what comes meanwhile is looked at in the next turn."""
        if self._following is not None:
            found = await Slices().result(self._following.lint())
            said = self._problems.update(found=found)
            if said is not self.state.problems:
                self._take(replace(self.state, problems=said))

    async def _certify(self, following: Model, slices: Slices) -> tuple[Problem, ...]:
        """Have the certificates that are needed now made, in a thread: it signs and writes."""
        validity, now = following.view.config.service_certificate_validity, self._clock()
        needs = await slices.result(following.certificate_needs())
        if following.certified and not self._keeper.has_work(needs, validity, now):
            return ()
        update = await asyncio.to_thread(self._keeper.update, needs, validity, now)
        await slices.result(following.certify(update, self._keeper.certificates))
        return update.problems

    def _verified(self, differences: tuple[str, ...]) -> None:
        """Say loudly where what is served is not what the same inputs come to from nothing."""
        self._metrics.verified(len(differences))
        for difference in differences:
            _log.error("what is served is not what its inputs come to", difference=difference)

    def _take(self, state: MeshState) -> None:
        log_new(state.problems, self.state.problems, self._specification.problems())
        self.state = state
        self._on_state(state)
