"""Quarantine: decisions after a rejection, such as excluding, withholding, trying and retrying."""

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

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
from xds.protocol.blame import blamed, said_of
from xds.protocol.resources.resource import SECRET, Resource, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Rejection, Response

K = TypeVar("K")

Judge = Callable[[TypeUrl, str], Reason]
"""Says why a resource of a type is rejected, by the proxy's words."""


def by_content(type_url: TypeUrl, said: str) -> Reason:
    """Take every rejection for one of content."""
    del type_url, said
    return Reason.CONTENT


class Quarantine:
    """Stands between what is computed and what is served: a proxy that rejected something is in a variant.

    A variant is a group of its own for those of a group that are to have the same. Everybody else is where
    the computation put them. What a proxy says moves that proxy alone, and what is kept of it is bounded by
    what it is served; it is forgotten with its workload.

    Where policy decides who is admitted, what a proxy rejects is taken out of the policy: units that are new
    since what it accepted last, or all of them, until the search has found which. They are content, and stay
    out over streams and restarts: `verdicts` are those of before the start. Resources that
    are rejected as such are offered again on each new stream. Both are offered again from time to time;
    `now` is a monotonic clock, `jitter` gives numbers from 0 to 1.
    """

    def __init__(
        self,
        empty: Empty,
        reason: Judge = by_content,
        verdicts: Iterable[Verdict] = (),
        now: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        acknowledged: Callable[[NodeKey], Acknowledged] | None = None,
    ) -> None:
        self._reason = reason
        self._now = now
        self._jitter = jitter
        self._records = Records(verdicts)
        self._accepted = AcknowledgedResources(
            acknowledged or defaultdict[NodeKey, Acknowledged](dict).__getitem__
        )
        self._variants = Variants(self._records, self._accepted, empty)
        self.streams = Streams(self._records, self._accepted, empty)
        self.findings = Findings(self._records)

    @property
    def published(self) -> PublishedSnapshots:
        """What is computed, as far as it is published: each proxy's own, whatever it has instead."""
        return self._records.published

    def served(self) -> PublishedSnapshots:
        """Return what is served, of what was computed."""
        return self._variants.all_served()

    def exclusions(self) -> Exclusions:
        """Return what is withheld from whom, for whoever computes it again."""
        return self._variants.exclusions()

    def after(self, step: Step) -> Step:
        """Take a step of what is computed; return the step of what is served."""
        before = self._records.published
        # Before the step is taken: what it replaces is what a rejection may have to go back to.
        replaced = list(self._replacing(step))
        self._recall(step)
        concerned = [
            node
            for node in self._records.by_node
            if node in step.members or before.members.get(node) in step.snapshots
        ]
        self._records.lapse(step.absent)
        self._variants.computed_anew()
        self._records.take(step)
        for old, group in replaced:
            self._accepted.replaced(group, old, self._records.published.snapshots.get(group))
        self._accepted.forget(_gone(step.members), _gone(step.snapshots))
        return self._variants.redirected(step, concerned)

    def forget(self, nodes: Iterable[NodeKey]) -> None:
        """Forget what was found of proxies that are not here, and whose workloads are gone now."""
        for node in nodes:
            self._records.earlier.pop(node, None)

    def undone(self, before: PublishedSnapshots) -> None:
        """Take it that a step was not published after all."""
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
        """Take a proxy's answer; return how what is served changes by it, None if it says nothing new.

        `changed` are the objects that led to the response. `stream` is given where several proxies share the
        identity: a rejection for a reason of the moment concerns this stream alone, and `streams` says what
        changes by it. The clock is asked where the moment matters: not of those that never rejected
        anything, which are nearly all.
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
        """Say whether something may follow from what a proxy accepts: it has rejected something."""
        return node in self._records.by_node or self.streams.any_of(node)

    def takes_calls(self, node: NodeKey, response: Response) -> bool:
        """Return whether a proxy that acknowledges this response has accepted all of its inbound listeners.

        Inbound listeners are the resources of the response's type that decide who is admitted.
        """
        own = self._records.own(node)
        if own is None:
            return False
        answered = {each.name for each in response.resources}
        return all(
            each.name in answered or self._accepted.by(node, (each.type_url, each.name)) is not None
            for each in own.ordered(response.type_url)
            if (piece := piece_of(each)) is not None and piece.admits
        )

    def accepted(self, node: NodeKey, response: Response) -> None:
        """Take it that a proxy accepted a response, from which nothing follows: it never rejected any."""
        published = self._records.published
        if (group := published.members.get(node)) is not None:
            self._accepted.note(node, group, response, published.snapshots[group])

    def opened(self, node: NodeKey) -> Step | None:
        """Take note of a new stream: resources that the proxy rejected are offered again on it."""
        record = self._records.by_node.get(node)
        return self._offered(node, [e for e in record.certain if not isinstance(e, str)] if record else ())

    def retry(self, node: NodeKey) -> Step | None:
        """Offer a proxy again all that it has rejected; return how what is served changes by it."""
        record = self._records.by_node.get(node)
        of_streams = self.streams.again(node)
        step = self._offered(node, record.certain if record is not None else ())
        return Step() if step is None and of_streams else step

    def due(self) -> float | None:
        """Return when `on_time` has something to do; None for as long as nothing is withheld."""
        moments = (each for record in self._records.by_node.values() if (each := record.due()) is not None)
        return min((*moments, *self.streams.due()), default=None)

    def on_time(self, now: float) -> Step | None:
        """Offer again what is due; return how what is served changes by it."""
        due = [
            node
            for node, record in self._records.by_node.items()
            if (at := record.due()) is not None and at <= now and record.on_time(now)
        ]
        of_streams = self.streams.on_time(now)
        return self._variants.redirected(Step(), due) if due or of_streams else None

    def _replacing(self, step: Step) -> Iterator[tuple[Snapshot, GroupKey]]:
        """Yield what is about to be replaced, and in which group: of those that change, and of who comes."""
        published = self._records.published
        pairs: dict[tuple[int, GroupKey], tuple[Snapshot, GroupKey]] = {}
        for group in step.snapshots:
            if (before := published.snapshots.get(group)) is not None:
                pairs[id(before), group] = (before, group)
        for node, moved_to in step.members.items():
            if moved_to is not None and (before := published.snapshot(node)) is not None:
                pairs[id(before), moved_to] = (before, moved_to)
        yield from pairs.values()

    def _recall(self, step: Step) -> None:
        """Take up what was found guilty before a restart, or earlier, of proxies that come."""
        for node in sorted(self._records.earlier.keys() & step.members.keys()):
            if step.members[node] is None:
                continue
            record = self._records.by_node.setdefault(node, Record())
            for each in self._records.earlier.pop(node):
                accusation = Accusation(
                    (each.type_url, each.name),
                    frozenset(),
                    each.said,
                    Reason.CONTENT,
                    each.date,
                    times=each.times,
                    confirmed=True,
                    due=self._now() + pause(each.times, self._jitter()),
                )
                record.recall(each.unit, accusation)

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
        """Note a rejection; say whether it is about anything that the proxy is still served so."""
        named, cost = blamed(response, rejection)
        in_force = served.resources(response.type_url)
        # A version that is served no more has been replaced already, and is nobody's trouble any longer.
        here = [each for name in named if (each := in_force.get(name)) and each.version == named[name]]
        is_guess = cost >= named.keys() and response.type_url != SECRET
        own = self._records.own(node)
        if is_guess:
            tried = self._tried(node, stream, response.type_url)
            here = blame.likeliest(here, own, lambda each: self._accepted.accepts(node, each), tried)
        if not here:
            return False
        of_identity, of_stream = list[Mapping[Suspect, Accusation]](), list[Mapping[Suspect, Accusation]]()
        for resource in here:
            place = (resource.type_url, resource.name)
            words = said_of(rejection, resource.name, named.keys())
            reason = self._reason(resource.type_url, words)
            said = Accusation(place, blame.versions(resource, own), words, reason, moment.date, changed)
            if stream is not None and reason.of_the_moment:
                of_stream.append({place: said})
                continue
            self._accepted.rejected(node, resource)
            known = self._records.by_node.get(node, Record()).accused
            goods = self._goods(node, group, resource)
            of_identity.append(dict.fromkeys(blame.suspected(resource, reason, known.get, goods), said))
        for together in _searched(of_identity, is_guess=is_guess):
            record = self._records.by_node.setdefault(node, Record())
            record.refuse(together, moment, self._jitter())
        for together in _searched(of_stream, is_guess=is_guess):
            self.streams.refuse(stream or 0, node, together, moment, self._jitter())
        return True

    def _tried(self, node: NodeKey, stream: int | None, type_url: TypeUrl) -> tuple[Suspect, ...]:
        """Return what is tried of a type now, of the proxy or of one of its streams."""
        records = (self._records.by_node.get(node), self.streams.find(stream))
        trials = (each.trials.get(type_url) for each in records if each is not None)
        return tuple(suspect for each in trials if each is not None for suspect in each.trying)

    def _goods(self, node: NodeKey, group: GroupKey, resource: Resource) -> Iterator[Resource | None]:
        """Yield what a rejected version is compared with: what counts as good, what the proxy accepted."""
        key, bad = (resource.type_url, resource.name), blame.versions(resource, self._records.own(node))
        yield next((e for e in self._accepted.good(node, group, key) if e.version not in bad), None)
        yield self._accepted.by(node, key)


def _searched(
    accused: list[Mapping[Suspect, Accusation]], *, is_guess: bool
) -> Iterable[Mapping[Suspect, Accusation]]:
    """Return the suspects, together where a search has to find which of them is at fault.

    Of a guess one is bad, or some: they are suspects together. Those that the words name are bad each, and
    each is searched for by itself.
    """
    if not is_guess or not accused:
        return accused
    return [dict(itertools.chain(*(each.items() for each in accused)))]


def _gone(changes: Mapping[K, object | None]) -> list[K]:
    return [key for key, value in changes.items() if value is None]
