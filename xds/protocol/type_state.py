"""One type's state on one stream: what was asked for, what the client holds, what was answered."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xds.protocol.name_sets import NO_NAMES, Names, first_of, joined, text_bytes, without
from xds.protocol.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.snapshot import Snapshot
from xds.protocol.subscription import FULL_STATE, Subscription
from xds.protocol.wire import ERROR_LIMIT, NO_VERSION, Nonce, Rejection, Response

UNANSWERED_LIMIT = 64
"""Responses remembered per type for a client that reads but does not answer."""

TOLD_AT_ONCE = 64 * 1024
"""Bytes of memory of the names that one incremental response takes back; the rest when it was answered."""

OVERTAKEN_LIMIT = 8
"""Responses remembered per type that a newer one overtook before the client answered (state of the world)."""

APPLIED_OTHERS = ("Error adding/updating cluster(s)", "Error adding/updating listener(s)")
"""How Envoy's words begin when it has looked at each resource by itself (1.36 to 1.40)."""


def blamed(response: Response, rejection: Rejection) -> tuple[dict[ResourceName, Version], set[ResourceName]]:
    """Return which resources of a response a rejection is about, with their versions, and which it may cost.

    An Envoy that says APPLIED_OTHERS has applied the good clusters and listeners, and names the bad ones
    (N3). In any other case it has taken nothing, or some, and those that are not at fault may be missing.
    Words that name none, or were cut, or are about another type, blame all.
    """
    versions = {resource.name: resource.version for resource in response.resources}
    if response.type_url not in FULL_STATE or len(rejection.message) >= ERROR_LIMIT:
        return versions, set(versions)
    named = {
        name: version
        for name, version in versions.items()
        if re.search(rf"(?<![\w|/.-]){re.escape(name)}(?![\w|/.-])", rejection.message)
    }
    if not named:
        return versions, set(versions)
    applied = rejection.message.startswith(APPLIED_OTHERS)
    return named, set() if applied else versions.keys() - named.keys()


@dataclass(slots=True)
class Channel:
    """The conversation about one type (rule S5: types on a stream are independent).

    `held` is what the client was sent and not told to drop, by version; `dirty` are names whose resource
    may differ from it; `must` are names to be sent whatever the client holds; `gone` are names to be
    taken back once nothing refers to them; `retired` are their last resources, for the answers that list
    everything until then. `owed` says that an answer must be sent even if it is empty. `suspected` are
    resources that stood in a rejected response and may be good: the client may have none of them, and with
    `retry` they are sent once more after the next that it accepts. `resumed` is how many resources the client
    said that it holds when it came, and `resumed_text` the memory of their text; `told_text` is that of the
    names taken back in responses not answered yet.
    """

    type_url: TypeUrl
    subscription: Subscription
    held: dict[ResourceName, Version] = field(default_factory=dict)
    dirty: Names = NO_NAMES
    must: Names = NO_NAMES
    gone: Names = NO_NAMES
    absent: Names = NO_NAMES
    retired: dict[ResourceName, Resource] = field(default_factory=dict)
    owed: bool = False
    last: Response | None = None
    unanswered: dict[Nonce, Response] = field(default_factory=dict)
    overtaken: dict[Nonce, Response] = field(default_factory=dict)
    acked_version: Version = NO_VERSION
    rejection: Rejection | None = None
    rejected: dict[ResourceName, Version] = field(default_factory=dict)
    suspected: Names = NO_NAMES
    retry: bool = False
    resumed: int = 0
    resumed_text: int = 0
    told_text: int = 0

    @property
    def has_news(self) -> bool:
        """Say whether there may be something to add or change."""
        return bool(self.owed or self.must or self.dirty or self.absent)

    @property
    def has_removals(self) -> bool:
        """Say whether there is something to take back."""
        return bool(self.gone)

    def on_the_way(self) -> set[ResourceName]:
        """Return the names that stand in responses not answered yet."""
        return {each.name for response in self.unanswered.values() for each in response.resources}

    def answered(self, nonce: Nonce, rejection: Rejection | None) -> None:
        """Take an ACK or NACK; one of a response that is not remembered says nothing (W5, W6, D12).

        A rejection stands until what was rejected is accepted in another version or no longer wanted.
        """
        if (response := self.unanswered.pop(nonce, None)) is None:
            return
        if response.removed:
            self.told_text -= text_bytes(response.removed)
        if not self.unanswered:
            self.unanswered.clear()  # a dictionary keeps the room that it had, unless told so
        self.overtaken.clear()  # answers come in the order of responses: none is left to come for these
        if rejection is not None:
            self._reject(response, rejection)
            return
        self.acked_version = response.version
        if self.rejection is not None or self.suspected:
            self._accept({resource.name for resource in response.resources})
            if self.retry:
                self._retry()

    def answered_late(self, nonce: Nonce, rejection: Rejection | None) -> None:
        """Take the answer to a response that a newer one overtook: that it was rejected must not be lost."""
        response = self.overtaken.pop(nonce, None)
        if response is not None and rejection is not None:
            self._reject(response, rejection)

    def sent(self, response: Response, *, supersedes: bool) -> None:
        """Remember a response that goes out now; with `supersedes` nobody waits for older ones' answers."""
        if supersedes:
            self.overtaken.update(self.unanswered)
            self.unanswered.clear()
            while len(self.overtaken) > OVERTAKEN_LIMIT:
                del self.overtaken[next(iter(self.overtaken))]
        elif len(self.unanswered) >= UNANSWERED_LIMIT:
            self.told_text -= text_bytes(self.unanswered.pop(next(iter(self.unanswered))).removed)
        if response.removed:
            self.told_text += text_bytes(response.removed)
        self.unanswered[response.nonce] = response
        self.last = response

    def touch(self, names: frozenset[ResourceName], old: Snapshot | None, new: Snapshot) -> None:
        """Take the names that differ between two snapshots; what the client does not want is passed over."""
        resources = new.resources(self.type_url)
        if self.suspected and (hit := names & (self.suspected | self.rejected.keys())):
            # D12: what was wrong may be mended now. What stood beside it waits for word of the changed ones.
            self.retry = True
            if hit.isdisjoint(resources):
                self._retry()
        # What is there again before its removal was said was never gone (O8, D18).
        there = {name for name in names if name in resources}
        wanted = {n for n in there if self.subscription.wants(n, on_demand=resources[n].on_demand)}
        self.dirty = joined(self.dirty, wanted)
        self.gone = without(self.gone, there)
        if self.retired:
            for name in there:
                self.retired.pop(name, None)
        if len(there) < len(names):
            self._lose(names - there, old)

    def _lose(self, names: Names, old: Snapshot | None) -> None:
        """Take the names of resources that are there no longer; what the client holds is to be taken back."""
        lost = names & self.held.keys()
        self.dirty = without(self.dirty, names)
        self.gone = joined(self.gone, lost)
        if old is not None:
            # Until the removal's turn has come (O2), an answer that lists everything must list it too (W9).
            before = old.resources(self.type_url)
            self.retired = {**{n: before[n] for n in lost if n in before}, **self.retired}

    def drop(self, names: AbstractSet[ResourceName]) -> None:
        """Forget names that the client no longer wants."""
        for name in names:
            self.held.pop(name, None)
            self.retired.pop(name, None)
        self.dirty, self.must = without(self.dirty, names), without(self.must, names)
        self.gone, self.absent = without(self.gone, names), without(self.absent, names)
        if names & (self.suspected | self.rejected.keys()):
            self._accept(names)
            self._retry()

    def drop_unwanted(self) -> None:
        """Forget what only a wildcard asked for, when it has ended."""
        self.drop({name for name in self.held if not self.subscription.wants(name)})

    def take_news(self, snapshot: Snapshot) -> tuple[Sequence[Resource], Sequence[Resource]]:
        """Return what must be sent, by name, and which of it the client does not hold so.

        All of it counts as held, and nothing is pending after. What was rejected is not sent again.
        """
        names, must = self.dirty | self.must, self.must
        changed = news = wanted = self._wanted(snapshot, names)
        if self.held or self.rejected:
            # What was rejected is held in no version, and so differs from any: what the client refused would
            # be sent again with each snapshot (W6, D12). Asked for by name it is sent all the same.
            held, rejected = self.held, self.rejected
            changed = news = [
                each
                for each in wanted
                if held.get(each.name) != each.version
                and (not rejected or each.name in must or rejected.get(each.name) != each.version)
            ]
            if must:
                # What is asked for anew is sent though it is held so (W8, D3), and is no change: nothing that
                # the client does about a changed resource will follow, and so no endpoints need to (O3).
                sent = {each.name for each in changed} | must
                news = [each for each in wanted if each.name in sent]
        self._hold(snapshot, changed)
        self.dirty = self.must = NO_NAMES
        return news, changed

    def _wanted(self, snapshot: Snapshot, names: Names) -> Sequence[Resource]:
        """Return the resources of these names that there are, in their order; the snapshot's own if all."""
        resources = snapshot.resources(self.type_url)
        if len(names) * 4 <= len(resources):
            return [resources[name] for name in sorted(names) if name in resources]
        if names >= resources.keys():
            return snapshot.ordered(self.type_url)
        # The snapshot is in the order of names: to go through it is quicker than to sort most of it again.
        return [resource for name, resource in resources.items() if name in names]

    def _hold(self, snapshot: Snapshot, resources: Sequence[Resource]) -> None:
        versions = snapshot.versions(self.type_url)
        if len(resources) == len(versions):  # all there is, as at first: a mapping made once for the group
            self.held.update(versions)
        else:
            self.held.update([(resource.name, resource.version) for resource in resources])

    def resume(self, held: Mapping[ResourceName, Version]) -> None:
        """Take what a client says it holds when it comes."""
        self.held.update(held)
        self.resumed, self.resumed_text = len(held), text_bytes(held.values())
        self.resumed_text += text_bytes(held.keys() - self.subscription.names)

    def take_absent(self) -> list[ResourceName]:
        """Return names asked for that are not there, as many as are told at once, and forget them."""
        told = first_of(self.absent, TOLD_AT_ONCE)
        self.absent = without(self.absent, frozenset(told))
        return told

    def take_removals(self, room: int | None = None) -> list[ResourceName]:
        """Return the names to take back, sorted, those there is room for, and forget them.

        They stay subscribed to.
        """
        removed = sorted(self.gone) if room is None else first_of(self.gone, room)
        self.drop(frozenset(removed))
        return removed

    def _reject(self, response: Response, rejection: Rejection) -> None:
        """D12: the client may hold what it had, or what it was sent; of what it rejected it has neither."""
        self.rejection = rejection
        names, suspected = blamed(response, rejection)
        # But not what the client has dropped since it was sent: nothing would ever end that rejection.
        self.rejected.update((name, names[name]) for name in names.keys() & self.held.keys())
        overtaken, unsure = False, set()
        for resource in response.resources:
            held = self.held.get(resource.name)
            if held not in (resource.version, NO_VERSION):
                overtaken = True  # changed or dropped since: perhaps that was the bad one
            elif resource.name in names or resource.name in suspected:
                self.held[resource.name] = NO_VERSION
                unsure.add(resource.name)
        self.suspected = joined(self.suspected, suspected & unsure)
        if overtaken:
            self._retry()
        if response.resources:  # what was to be removed may be there still, for the sake of a bad neighbour
            self.gone = joined(self.gone, set(response.removed) - self.held.keys() - self.dirty - self.must)

    def _retry(self) -> None:
        self.must = joined(self.must, self.suspected)
        self.retry = False

    def _accept(self, names: AbstractSet[ResourceName]) -> None:
        for name in names & self.rejected.keys():
            del self.rejected[name]
        self.suspected = without(self.suspected, names)
        if not self.rejected:
            self.rejection = None
