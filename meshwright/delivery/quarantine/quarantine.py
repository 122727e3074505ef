"""Quarantine: decides after each answer what to exclude, replace and retry.

`after` turns a step of computed snapshots into a step of snapshots to serve. After a NACK, `answered` returns
a step that moves the proxy into a variant of its group. Read next: `record` (state of one proxy), `blame`
(suspects), `fallback` (the reduced snapshot).
"""

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from catalog.policy.units import UnitId
from meshwright.delivery.quarantine import blame
from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged, AcknowledgedResources
from meshwright.delivery.quarantine.fallback import Empty, Exclusions
from meshwright.delivery.quarantine.findings import Findings
from meshwright.delivery.quarantine.record import Accusation, Moment, Record, Suspect, pause
from meshwright.delivery.quarantine.records import Records
from meshwright.delivery.quarantine.reduced_snapshot import piece_of
from meshwright.delivery.quarantine.streams import Streams
from meshwright.delivery.quarantine.variants import Variants
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.mesh.objects import ObjectKey
from meshwright.sidecars.contract.reasons import Reason
from xds.cache import GroupKey, NodeKey
from xds.protocol.blame import blamed, message_about
from xds.protocol.resources.resource import SECRET, Resource, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Rejection, Response

K = TypeVar("K")

Judge = Callable[[TypeUrl, str], Reason]
"""Function that derives the reason of a rejection from the type URL and the proxy's error message."""


def by_content(type_url: TypeUrl, message: str) -> Reason:
    """Return CONTENT as the reason of each rejection; for drivers without interpretation of messages."""
    del type_url, message
    return Reason.CONTENT


class Quarantine:
    """Filter between computed and served snapshots: proxies with rejections belong to variants of groups.

    A variant is a group of its own for proxies with the same reduced snapshot. All other proxies stay in the
    computed group. The answer of a proxy moves this proxy alone. The memory per proxy is bounded by the size
    of the snapshot, and freed with the workload.

    In resources made from policy, the units of policy at fault are excluded: first all units added since the
    last accepted version (without such a version, all), then fewer as the search proceeds. A proved unit
    stays excluded over streams and restarts; `verdicts` restores such units after a restart. A resource
    rejected as a whole is offered again on each new stream. Both are also offered again from time to time.

    `now` reads a monotonic clock in seconds, and `jitter` returns numbers from 0 to 1.

    `connected` returns whether a proxy is connected here, and is `None` for the only server of a mesh. With
    several servers, the server of a proxy offers rejected resources again, and `heard` receives the verdicts
    of the others. Then verdicts on missing workloads stay, until `heard` ends them.
    """

    def __init__(
        self,
        empty: Empty,
        reason: Judge = by_content,
        verdicts: Iterable[Verdict] = (),
        now: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        acknowledged: Callable[[NodeKey], Acknowledged] | None = None,
        connected: Callable[[NodeKey], bool] | None = None,
    ) -> None:
        self._reason = reason
        self._now = now
        self._jitter = jitter
        self._has_others, self._is_here = connected is not None, connected or _here
        self._records = Records(verdicts)
        self._accepted = AcknowledgedResources(
            acknowledged or defaultdict[NodeKey, Acknowledged](dict).__getitem__
        )
        self._variants = Variants(self._records, self._accepted, empty)
        self.streams = Streams(self._records, self._accepted, empty)
        self.findings = Findings(
            self._records, self._variants.served, self._is_here, has_others=self._has_others
        )

    @property
    def published(self) -> PublishedSnapshots:
        """The computed snapshots that are published, before any exclusion."""
        return self._records.published

    def served(self) -> PublishedSnapshots:
        """Return the snapshots as served to proxies: with variants in place of groups."""
        return self._variants.all_served()

    def exclusions(self) -> Exclusions:
        """Return the excluded units and versions by proxy, for a computation from scratch."""
        return self._variants.exclusions()

    def after(self, step: Step) -> Step:
        """Accept a step of computed snapshots; return the step to publish, with exclusions applied."""
        before = self._records.published
        # Read the replaced snapshots before `take` overwrites them: a rejection may have to go back to them.
        replaced = list(self._replacing(step))
        concerned = {
            node
            for node in self._records.by_node
            if node in step.members or before.members.get(node) in step.snapshots
        }
        self._records.lapse(_gone(step.members) if self._has_others else step.absent)
        self._variants.computed_anew()
        self._records.take(step)
        concerned |= self._recall(step)
        for old, group in replaced:
            self._accepted.replaced(group, old, self._records.published.snapshots.get(group))
        self._accepted.forget(_gone(step.members), _gone(step.snapshots))
        return self._variants.redirected(step, sorted(concerned))

    def forget(self, nodes: Iterable[NodeKey]) -> None:
        """Forget the verdicts on disconnected proxies whose workloads are gone."""
        if self._has_others:
            return
        for node in nodes:
            self._records.earlier.pop(node, None)

    def heard(self, node: NodeKey, found: Iterable[Verdict], ended: Collection[UnitId]) -> Step | None:
        """Take the verdicts on a proxy that other servers have found, and end those that they have ended.

        Return the step to serve, or `None` for no change, for example if the proxy is not connected here.
        """
        news = tuple(found)
        self._records.heard(node, news, ended, self._now())
        if (record := self._records.by_node.get(node)) is not None:
            record.confirm(verdict.unit for verdict in news)
            record.end(ended)
        self._restore(node)
        return self._variants.redirected(Step(), [node]) if node in self._records.by_node else None

    def undone(self, before: PublishedSnapshots) -> None:
        """Restore the published snapshots before a step with a failed publication."""
        self._records.published = before

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        clock: Callable[[], Moment],
        changed: frozenset[ObjectKey] = frozenset(),
        stream: int | None = None,
    ) -> Step | None:
        """Handle an ACK or NACK; return the step to serve, or `None` if the answer changes nothing.

        `changed` are the objects behind the response. `stream` is given if several proxies share the
        identity: a rejection for a temporary reason then concerns this stream alone, and `streams` has the
        changes. `clock` is called only for proxies with rejections, because nearly all proxies have none and
        reading the clock costs time for each ACK.
        """
        if rejection is None and not self.decides(node):
            self.accepted(node, response)
            return None
        group = self._records.group(node)
        served = self._variants.served(node)
        if group is None or served is None:  # its workload is not known: it keeps what it has
            return None
        moment = clock()
        of_stream = self.streams.find(stream)
        if stream is not None and of_stream is not None:
            served = self.streams.lessened(stream, served)
        if rejection is not None:
            if not self._reject(node, group, served, response, rejection, moment, changed, stream):
                return None
            return self._variants.redirected(Step(), [node] if node in self._records.by_node else [])
        record = self._records.by_node.get(node)
        is_less = of_stream is not None or (record is not None and record.variant is not None)
        self._accepted.note(node, None if is_less else group, response, served)
        news = (
            stream is not None
            and of_stream is not None
            and self.streams.accepted(stream, response, served, moment)
        )
        if record is None:
            return Step() if news else None
        there = served.versions(response.type_url)
        now = {(e.type_url, e.name) for e in response.resources if there.get(e.name) == e.version}
        confirmed = record.accepted(now)
        if not blame.goes_on(record, served, now, response.type_url):
            return Step() if confirmed or news else None
        record.moved = moment.seconds
        return self._variants.redirected(Step(), [node])

    def decides(self, node: NodeKey) -> bool:
        """Return whether an ACK of this proxy can change a decision, because the proxy has rejections."""
        return node in self._records.by_node or self.streams.any_of(node)

    def serves(self, node: NodeKey) -> bool:
        """Return whether a proxy is connected here, and has a computed snapshot."""
        return self._is_here(node) and self._records.group(node) is not None

    def takes_calls(self, node: NodeKey, response: Response) -> bool:
        """Return whether a proxy with this ACK has accepted all inbound listeners.

        Inbound listeners are the resources of the response's type that decide about the admission of callers.
        """
        own = self._records.own(node)
        if own is None:
            return False
        answered = {resource.name for resource in response.resources}
        return all(
            resource.name in answered
            or self._accepted.by(node, (resource.type_url, resource.name)) is not None
            for resource in own.ordered(response.type_url)
            if (piece := piece_of(resource)) is not None and piece.admits
        )

    def accepted(self, node: NodeKey, response: Response) -> None:
        """Record an ACK of a proxy without rejections, which changes no decision."""
        published = self._records.published
        if (group := published.members.get(node)) is not None:
            self._accepted.note(node, group, response, published.snapshots[group])

    def held(self, node: NodeKey, response: Response) -> None:
        """Record served resources that a reconnecting proxy holds already, as acknowledged by this proxy.

        Without this record, a proxy that is new at this server would never have acknowledged them.
        """
        if (served := self._variants.served(node)) is not None:
            self._accepted.note(node, None, response, served)

    def opened(self, node: NodeKey) -> Step | None:
        """Handle a proxy's new stream: offer rejected resources again, but not excluded units of policy."""
        record = self._records.by_node.get(node)
        if record is None:
            return None
        # An offer of before has lost its meaning, if the proxy was connected to another server meanwhile.
        is_excluded = self._has_others and record.exclude_proved()
        offered = record.again([e for e in record.certain if not isinstance(e, str)])
        return self._variants.redirected(Step(), [node]) if offered or is_excluded else None

    def retry(self, node: NodeKey) -> Step | None:
        """Offer a proxy all rejected resources again; return the step to serve, or `None` for no change."""
        record = self._records.by_node.get(node)
        of_streams = self.streams.again(node)
        step = self._offered(node, record.certain if record is not None else ())
        return Step() if step is None and of_streams else step

    def due(self) -> float | None:
        """Return the time of the next retry by `on_time`, or `None` if no resource is withheld."""
        moments = (
            number
            for node, record in self._records.by_node.items()
            if self._is_here(node) and (number := record.due()) is not None
        )
        return min((*moments, *self.streams.due()), default=None)

    def on_time(self, now: float) -> Step | None:
        """Offer all rejected resources with a due retry again; return the step to serve, or `None`."""
        due = [
            node
            for node, record in self._records.by_node.items()
            if self._is_here(node) and (at := record.due()) is not None and at <= now and record.on_time(now)
        ]
        of_streams = self.streams.on_time(now)
        return self._variants.redirected(Step(), due) if due or of_streams else None

    def _replacing(self, step: Step) -> Iterator[tuple[Snapshot, GroupKey]]:
        """Yield each replaced snapshot, with the group whose proxies may have to go back to it.

        These are the old snapshots of changed groups, and the former snapshots of proxies moving into a
        group.
        """
        published = self._records.published
        pairs: dict[tuple[int, GroupKey], tuple[Snapshot, GroupKey]] = {}
        for group in step.snapshots:
            if (before := published.snapshots.get(group)) is not None:
                pairs[id(before), group] = (before, group)
        for node, moved_to in step.members.items():
            if moved_to is not None and (before := published.snapshot(node)) is not None:
                pairs[id(before), moved_to] = (before, moved_to)
        yield from pairs.values()

    def _recall(self, step: Step) -> set[NodeKey]:
        """Restore earlier verdicts on newly connected proxies, also from before a restart; return these.

        Verdicts of other servers on policy that this server has read only now are restored too.
        """
        nodes = (self._records.earlier.keys() & step.members.keys()) | self._records.waiting
        return {node for node in sorted(nodes) if self._restore(node)}

    def _restore(self, node: NodeKey) -> bool:
        """Restore the earlier verdicts on a proxy, if there are any on its present policy."""
        now = self._now()
        verdicts = self._records.take_earlier(node, now)
        for verdict in verdicts:
            accusation = Accusation(
                (verdict.type_url, verdict.name),
                frozenset(),
                verdict.message,
                Reason.CONTENT,
                verdict.date,
                times=verdict.times,
                confirmed=True,
                due=now + pause(verdict.times, self._jitter()),
            )
            self._records.by_node.setdefault(node, Record()).recall(verdict.unit, accusation)
        return bool(verdicts)

    def _offered(self, node: NodeKey, items: Iterable[Suspect]) -> Step | None:
        record = self._records.by_node.get(node)
        if record is None or not record.again(items):
            return None
        return self._variants.redirected(Step(), [node])

    def _reject(
        self,
        node: NodeKey,
        group: GroupKey,
        served: Snapshot,
        response: Response,
        rejection: Rejection,
        moment: Moment,
        changed: frozenset[ObjectKey],
        stream: int | None,
    ) -> bool:
        """Record a rejection; return False if all rejected versions have been replaced meanwhile."""
        named, cost = blamed(response, rejection)
        in_force = served.resources(response.type_url)
        # A version that is not served any more has been replaced already, so its rejection needs no action.
        here = [item for name in named if (item := in_force.get(name)) and item.version == named[name]]
        is_guess = cost >= named.keys() and response.type_url != SECRET
        own = self._records.own(node)
        if is_guess:
            tried = self._tried(node, stream, response.type_url)
            here = blame.likeliest(here, own, lambda item: self._accepted.accepts(node, item), tried)
        if not here:
            return False
        of_identity, of_stream = list[Mapping[Suspect, Accusation]](), list[Mapping[Suspect, Accusation]]()
        for resource in here:
            place = (resource.type_url, resource.name)
            words = message_about(rejection, resource.name, named.keys())
            reason = self._reason(resource.type_url, words)
            accusation = Accusation(place, blame.versions(resource, own), words, reason, moment.date, changed)
            if stream is not None and reason.of_the_moment:
                of_stream.append({place: accusation})
                continue
            self._accepted.rejected(node, resource)
            known = self._records.by_node.get(node, Record()).accused
            goods = self._goods(node, group, resource)
            of_identity.append(dict.fromkeys(blame.suspected(resource, reason, known.get, goods), accusation))
        for together in _searched(of_identity, is_guess=is_guess):
            record = self._records.by_node.setdefault(node, Record())
            record.refuse(together, moment, self._jitter())
        for together in _searched(of_stream, is_guess=is_guess):
            self.streams.refuse(stream or 0, node, together, moment, self._jitter())
        return True

    def _tried(self, node: NodeKey, stream: int | None, type_url: TypeUrl) -> tuple[Suspect, ...]:
        """Return the suspects of a type on trial, of the proxy and of one of its streams."""
        records = (self._records.by_node.get(node), self.streams.find(stream))
        trials = (record.trials.get(type_url) for record in records if record is not None)
        return tuple(suspect for trial in trials if trial is not None for suspect in trial.trying)

    def _goods(self, node: NodeKey, group: GroupKey, resource: Resource) -> Iterator[Resource | None]:
        """Yield the versions to compare with a rejected one: the best good one, and the accepted one."""
        key, bad = (resource.type_url, resource.name), blame.versions(resource, self._records.own(node))
        yield next((e for e in self._accepted.good(node, group, key) if e.version not in bad), None)
        yield self._accepted.by(node, key)


def _searched(
    accused: list[Mapping[Suspect, Accusation]], *, is_guess: bool
) -> Iterable[Mapping[Suspect, Accusation]]:
    """Return groups of suspects, each searched separately.

    After a guess, the fault is in one or more of all suspects, so they form one group. If the message names
    resources, each of them is at fault, so each has a group of its own.
    """
    if not is_guess or not accused:
        return accused
    return [dict(itertools.chain(*(accusations.items() for accusations in accused)))]


def _here(node: NodeKey) -> bool:
    """Return True: with one server, each proxy is connected here, or nowhere."""
    del node
    return True


def _gone(changes: Mapping[K, object | None]) -> list[K]:
    return [key for key, value in changes.items() if value is None]
