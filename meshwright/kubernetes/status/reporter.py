"""Follower of the xDS delivery: problems of a cluster's objects, and progress of their rollouts."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.settings import Admission
from meshwright.delivery.assembly import Delivery
from meshwright.delivery.problems import ProblemChanges
from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.wave import Wave
from meshwright.kubernetes.status.ancestors.changes import PolicyStates
from meshwright.kubernetes.status.events.patience import Patience
from meshwright.kubernetes.status.gateways.changes import GatewayStates
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.other_progress import ObjectProgress, ProgressElsewhere
from meshwright.kubernetes.status.parents.changes import RouteVerdicts
from meshwright.kubernetes.status.rollouts import Names, Progress, Rollouts, concerned
from meshwright.kubernetes.status.writer import Decisions, Writer
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import GATEWAY, REJECTION
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.snapshot import Snapshot

SOON: Final = 1.0
"""Seconds between a change and its report, so that a burst is reported once and proxies have answered."""


PATIENCE: Final = 5
"""Maximum postponed reports in a row while waves are computed, because waves may follow one another."""

OTHERS: Final = 5.0
"""Seconds between two questions to other servers, which may have seen a change later than this one."""

AGAIN: Final = 30.0
"""Seconds after which a task restarts after an internal error."""

_log = structlog.get_logger("reporting.reporter")


class DeliveryProxies:
    """State of the connected proxies, read from the xDS delivery."""

    def __init__(self, delivery: Delivery) -> None:
        self._cache, self._registry = delivery.cache, delivery.registry

    def acknowledged(self, node: NodeKey) -> Acknowledged | None:
        """Return the xDS resources that a proxy acknowledged; None if the proxy is not connected."""
        proxy = self._registry.find(node)
        return None if proxy is None or not proxy.streams else proxy.acknowledged

    def served(self, node: NodeKey) -> Snapshot | None:
        """Return the xDS snapshot that is served to a proxy."""
        return self._cache.snapshot(node)

    def connected_nodes(self, group: GroupKey) -> Iterator[NodeKey]:
        """Yield the connected proxies of a group with a common snapshot."""
        return (node for node in self._cache.members(group) if self.acknowledged(node) is not None)


AskOthers = Callable[[], Awaitable[tuple[Mapping[str, Iterable[ObjectProgress]], Iterable[str]] | None]]
"""Function that asks the other servers for their progress; also returns those without an answer.

The result is None if this server does not lead, because only the leader reports.
"""


async def _nobody() -> tuple[Mapping[str, Iterable[ObjectProgress]], Iterable[str]] | None:
    """Return None: there are no other servers."""
    return None


class ReportLeadership(Protocol):
    """Leadership among several servers: a Lease, or the leadership of a mesh with several servers."""

    async def run(self, lead: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run `lead` while this server leads, until cancelled."""


@dataclass(frozen=True, slots=True)
class _PublishedWave:
    """The last wave of changes: changed objects, objects with changed admission, and their proxies."""

    number: int = -1
    changed: tuple[ObjectKey, ...] = ()
    admitted: tuple[ObjectKey, ...] = ()
    own: Mapping[NodeKey, Names] = field(default_factory=dict)


class Reporter:
    """Updates the status table `standing` from delivery, and runs `writer` while `lease` is held.

    Notifications from delivery are recorded and processed later, so that delivery never waits.
    """

    def __init__(
        self,
        delivery: Delivery,
        standing: ObjectStatusTable,
        lease: ReportLeadership,
        writer: Callable[[Callable[[ObjectKey], Progress | None], Decisions], Writer],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic, self._patience = monotonic, Patience()
        self._delivery, self._standing, self._lease = delivery, standing, lease
        self._here = DeliveryProxies(delivery)
        self._rollouts = Rollouts(self._here)
        self._elsewhere = ProgressElsewhere()
        self._ask: AskOthers = _nobody
        self._verdicts, self._gateways = RouteVerdicts(), GatewayStates(self._here)
        self._policies = PolicyStates()
        self._writer = writer(self._progress, Decisions(self._verdicts, self._gateways, self._policies))
        self._moves: ProblemChanges = delivery.loop.state.all_problems.follow()
        self._merged = MergedObjects()
        self._admissions: Picture[ProxyName, Admission] = Picture()
        self._new_proxies: dict[ProxyName, None] = {}
        self._unpublished: dict[ObjectKey, None] = {}
        self._wave = _PublishedWave()
        self._changed = asyncio.Event()
        self._passed = 0
        delivery.followers.append(self)

    def ask_others(self, ask: AskOthers) -> None:
        """Add the progress at other servers, which `ask` returns while this server leads."""
        self._ask = ask

    def own_progress(self) -> tuple[ObjectProgress, ...]:
        """Return the progress of the last change of each object at the proxies of this server."""
        every = self._rollouts.all_progress() | self._gateways.all_progress()
        return tuple(
            ObjectProgress(key, self._standing.generation(key) or 0, progress.applied, progress.total)
            for key, progress in every.items()
        )

    def _progress(self, key: ObjectKey) -> Progress | None:
        own = self._gateways.progress(key) if key.kind == GATEWAY else self._rollouts.progress(key)
        if not (self._elsewhere.known or self._elsewhere.silent):
            return own
        return self._elsewhere.progress(key, own, self._standing.generation(key))

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the reporter's tasks, with their names; they run as long as the server."""
        yield "reports", _guarded("reports", self._follow_on)
        yield "report writing", _guarded("report writing", lambda: self._lease.run(self._lead))

    def published(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        """Record the proxies that a wave, or a part of it, concerns, for objects with a status."""
        if all(cause.kind == REJECTION for cause in wave.causes):
            return
        try:
            self._publish(wave, step, replaced)
        except Exception:  # noqa: BLE001 - the snapshots are published already; only the report is incomplete
            _log.exception("rollout cannot be tracked", wave=wave.number)

    def _publish(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        self._follow()
        nodes = concerned(replaced, step.snapshots, self._here.connected_nodes)
        for node, group in step.members.items():
            if group is not None and self._here.acknowledged(node) is not None:
                nodes.setdefault(node, None)
        if self._wave.number != wave.number:
            self._begin(wave, nodes)
        changed, admitted = self._wave.changed, self._wave.admitted
        if changed or admitted:
            self._rollouts.extend(changed, nodes)
            others = {node: names for node, names in nodes.items() if node not in self._wave.own}
            self._rollouts.extend(admitted, others)
            self._changed.set()

    def _begin(self, wave: Wave, nodes: Mapping[NodeKey, Names]) -> None:
        """Begin two rollouts: for the changed objects of a wave, and for objects whose admission changed.

        The proxies of the latter must apply even an empty change. `nodes` are the proxies in the first part
        of the wave.
        """
        admitted = dict(self._changed_proxies())
        own = {node: nodes.get(node) for node in admitted.values()}
        changed = tuple(key for key in self._unpublished if key not in admitted)
        self._rollouts.begin(self._unpublished, {})
        self._rollouts.renew(admitted, own)
        self._unpublished.clear()
        self._new_proxies.clear()
        self._wave = _PublishedWave(wave.number, changed, tuple(admitted), own)

    def changed(self) -> None:
        """Schedule an update of the status table. Called after each wave of changes and each lint run."""
        if not self._merged.states:
            self._follow()  # objects of the first wave are the initial state, not changes
        self._changed.set()

    def stated(self, states: Mapping[ObjectKey, str]) -> None:
        """Replace the state texts of the objects that have one in their status, and wake the writer."""
        self._standing.stated(states)
        if self._standing.is_touched:
            self._writer.changed.set()

    async def _follow_on(self) -> None:
        """Update the status table after each change, until cancelled."""
        while True:
            if not (self._rollouts.is_pending or self._elsewhere.is_pending):
                await self._something()
            await asyncio.sleep(SOON)
            self._changed.clear()
            try:
                await self.look()
            except Exception:
                self._changed.set()  # otherwise what the look has left would wait for the next change
                raise

    async def _something(self) -> None:
        """Wait for a change, or until a problem with a delayed Event is due."""
        seconds = self._patience.seconds(self._monotonic())
        if self._ask is not _nobody:
            seconds = OTHERS if seconds is None else min(seconds, OTHERS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def look(self) -> None:
        """Update the status table with the changes since the last call, and wake the writer."""
        loop = self._delivery.loop
        await loop.linting.finish()
        if loop.model is None:
            return  # before the first wave, or after a failed wave: the next wave reports everything
        if loop.doing and self._passed < PATIENCE:
            # The changed snapshots are not published yet, and proxies with the old ones would count as done.
            self._passed += 1
            self._changed.set()
            return
        self._passed = 0
        if not loop.doing:
            self._follow()
            self._rollouts.begin(self._unpublished, {})
            self._unpublished.clear()
            self._new_proxies.clear()
        self._hear(self._moves.take())
        self._standing.touch(self._rollouts.look())
        for followed in (self._verdicts, self._gateways, self._policies):
            self._standing.touch(followed.take_changed())
        await self._ask_others()
        self._writer.known.set()
        if self._standing.is_touched:
            self._writer.changed.set()

    async def _ask_others(self) -> None:
        """Ask the other servers for their progress, and mark the objects with another progress."""
        answered = await self._ask()
        before = self._elsewhere
        self._elsewhere = ProgressElsewhere() if answered is None else before.answered(*answered)
        self._standing.touch(self._elsewhere.changed_since(before))

    async def _lead(self) -> None:
        """Report, beginning with the progress at all servers, because the own one may look complete."""
        await self._ask_others()
        await self._writer.lead()

    def _hear(self, moves: Mapping[Problem, bool]) -> None:
        """Pass problems on: to a status at once, because a status is a state; to Events after the delay."""
        states = {
            problem: stands for problem, stands in moves.items() if self._standing.has_state(problem.key)
        }
        events = {problem: stands for problem, stands in moves.items() if problem not in states}
        self._standing.apply_problems(states | self._patience.passed(events, self._monotonic()))

    def _follow(self) -> None:
        """Apply the changes of the waves since the last call, and collect changed objects with a status."""
        if (model := self._delivery.loop.model) is None:
            return
        merged, before = model.merged, self._merged
        admissions, known = model.admissions, self._admissions
        self._merged, self._admissions = merged, admissions
        edits = merged.since(before)
        self._standing.apply_edits(edits)
        self._verdicts.apply_edits(model.view, edits)
        self._gateways.apply_edits(model.view, edits)
        self._policies.apply_edits(model.view, edits)
        if not before.states:
            return  # the initial state
        self._new_proxies.update(dict.fromkeys(admissions.since(known)))
        for key in (key for key, sourced in edits.items() if sourced is None):
            self._rollouts.forget(key)
        self._unpublished.update(dict.fromkeys(self._other(edits, before)))

    def _other(
        self, edits: Mapping[ObjectKey, SourcedObject | None], before: MergedObjects
    ) -> Iterator[ObjectKey]:
        for key, sourced in edits.items():
            if sourced is not None and self._standing.has_status(key):
                was = before.in_force(key.claim)
                if was is None or was.value != sourced.value:
                    yield key

    def _changed_proxies(self) -> Iterator[tuple[ObjectKey, NodeKey]]:
        """Yield the workload objects with newly admitted or withdrawn proxies, and these proxies."""
        if (model := self._delivery.loop.model) is None:
            return
        for name in self._new_proxies:
            workload = holder_of(model.view, name)
            key = None if workload is None else workload_object(model.view, workload.key)
            if key is not None and self._standing.has_status(key):
                yield key, NodeKey(str(name))


async def _guarded(name: str, work: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run a task of the reporter for ever. An error is logged, and the task starts again."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - any error is logged, and the task restarts
            _log.exception("status reporting failed and starts again", task=name)
        await asyncio.sleep(AGAIN)
