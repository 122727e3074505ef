"""One type's state on one stream: what was asked for, what the client holds, what was answered.

There are thousands of streams, each with several types, and most hold the same: what may be equal for many is
a value that they share, and what hardly any has is nothing where it is not there.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xds.protocol.blame import Blame, blamed
from xds.protocol.lives import Lives, lives_after
from xds.protocol.resources.layers import NOTHING
from xds.protocol.resources.name_sets import NO_NAMES, Names, first_of, joined, text_bytes, without
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resources import NO_RESOURCES, Resources
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.resources.versions import NO_VERSIONS, Versions
from xds.protocol.subscription import Subscription
from xds.protocol.wire import NO_NONCE, NO_VERSION, Nonce, Rejection, Response

UNANSWERED_LIMIT = 64
"""Responses remembered per type for a client that reads but does not answer."""

TOLD_AT_ONCE = 64 * 1024
"""Bytes of memory of the names that one incremental response takes back; the rest when it was answered."""

OVERTAKEN_LIMIT = 8
"""Responses remembered per type that a newer one overtook before the client answered (state of the world)."""


@dataclass(slots=True)
class Channel:
    """The conversation about one type (rule S5: types on a stream are independent).

    `held` is what the client was sent and not told to drop, by version, and `in_force` what there is: they
    are one object where the client has all of it. `dirty` are names whose resource may differ from what is
    held, `must` are names to be sent whatever the client holds; `all_dirty` and `all_must` say the same of
    all that is wanted. `gone` are names to be taken back once nothing refers to them; `retired` are their
    last resources, for the answers that list everything until then. `owed` says that an answer must be sent
    even if it is empty. `resumed` is how many resources the client said that it holds when it came, and
    `resumed_text` the memory of their text; `told_text` is that of the names taken back in responses not
    answered yet.
    """

    type_url: TypeUrl
    subscription: Subscription
    in_force: Versions = NO_VERSIONS
    held: Versions = NO_VERSIONS
    dirty: Names = NO_NAMES
    must: Names = NO_NAMES
    gone: Names = NO_NAMES
    absent: Names = NO_NAMES
    passed_over: Names = NO_NAMES
    all_dirty: bool = False
    all_must: bool = False
    owed: bool = False
    retired: Resources = NO_RESOURCES
    sent_nonce: Nonce = NO_NONCE
    sent_version: Version = NO_VERSION
    acked_version: Version = NO_VERSION
    unanswered: tuple[Response, ...] = ()
    overtaken: tuple[Response, ...] = ()
    blame: Blame | None = None
    resumed: int = 0
    resumed_text: int = 0
    told_text: int = 0
    mortal: Lives = field(default_factory=lambda: NOTHING)

    @property
    def has_news(self) -> bool:
        """Say whether there may be something to add or change."""
        return bool(self.owed or self.must or self.dirty or self.absent or self.all_dirty or self.all_must)

    @property
    def has_removals(self) -> bool:
        """Say whether there is something to take back."""
        return bool(self.gone)

    @property
    def rejection(self) -> Rejection | None:
        """The rejection that stands."""
        return None if self.blame is None else self.blame.rejection

    @property
    def rejected(self) -> Mapping[ResourceName, Version]:
        """What it is about."""
        return NOTHING if self.blame is None else self.blame.rejected

    def on_the_way(self) -> set[ResourceName]:
        """Return the names that stand in responses not answered yet; a heartbeat brings nothing new."""
        sent = (response for response in self.unanswered if not response.heartbeat)
        return {each.name for response in sent for each in response.resources}

    def accepted(self, name: ResourceName) -> Version:
        """Return the version of a resource that the client holds and has not refused; none where it does not.

        One that came with it says what it holds, and has nothing to acknowledge.
        """
        if name in self.rejected or name in self.on_the_way():
            return NO_VERSION
        return self.held.get(name, NO_VERSION)

    def awaiting(self, nonce: Nonce) -> Response | None:
        """Return the response that a request with that nonce would answer, None if it answers none."""
        return _with(nonce, self.unanswered) or _with(nonce, self.overtaken)

    def acknowledged(self, nonce: Nonce) -> Response | None:
        """Take an ACK of what is awaited, if nothing follows from it; return the response, or None."""
        if self.blame is not None:
            return None
        if (response := _with(nonce, self.unanswered)) is None:
            if (response := _with(nonce, self.overtaken)) is not None:
                self.overtaken = _without(self.overtaken, response)
            return response
        if response.removed:
            return None
        self.unanswered = _without(self.unanswered, response)
        self.overtaken, self.acked_version = (), response.version
        return response

    def answered(self, nonce: Nonce, rejection: Rejection | None) -> None:
        """Take an ACK or NACK; one of a response that is not remembered says nothing (W5, W6, D12).

        A rejection stands until what was rejected is accepted in another version or no longer wanted.
        """
        if (response := _with(nonce, self.unanswered)) is None:
            return
        self.unanswered = _without(self.unanswered, response)
        if response.removed:
            self.told_text -= text_bytes(response.removed)
        self.overtaken = ()  # answers come in the order of responses: none is left to come for these
        if rejection is not None:
            self._reject(response, rejection)
            return
        self.acked_version = response.version
        if self.blame is not None:
            self.blame.accept({resource.name for resource in response.resources})
            if self.blame.retry:
                self._retry()
            self.blame = self.blame or None

    def answered_late(self, nonce: Nonce, rejection: Rejection | None) -> None:
        """Take the answer to a response that a newer one overtook: that it was rejected must not be lost."""
        if (response := _with(nonce, self.overtaken)) is not None:
            self.overtaken = _without(self.overtaken, response)
            if rejection is not None:
                self._reject(response, rejection)

    def sent(self, response: Response, *, supersedes: bool) -> None:
        """Remember a response that goes out now; with `supersedes` nobody waits for older ones' answers."""
        if supersedes:
            self.overtaken = (*self.overtaken, *self.unanswered)[-OVERTAKEN_LIMIT:]
            self.unanswered = ()
        else:
            self.mortal = lives_after(self.mortal, self.held, response)
        if len(self.unanswered) >= UNANSWERED_LIMIT:
            self.told_text -= text_bytes(self.unanswered[0].removed)
            self.unanswered = self.unanswered[1:]
        if response.removed:
            self.told_text += text_bytes(response.removed)
        self.unanswered = (*self.unanswered, response)
        self.sent_nonce, self.sent_version = response.nonce, response.version

    def touch(self, names: frozenset[ResourceName], old: Snapshot | None, new: Snapshot) -> None:
        """Take the names that differ between two snapshots; what the client does not want is passed over."""
        resources = new.resources(self.type_url)
        before, self.in_force = self.in_force, resources.versions
        if self.subscription.names is before and all(n in before and n in resources for n in names):
            self.subscription.names = (
                self.in_force
            )  # the names are the same: who has all keeps nothing of its own
        if self.blame is not None and self.blame.suspected and self.blame.concerns(names):
            # D12: what was wrong may be mended now. What stood beside it waits for word of the changed ones.
            self.blame.retry = True
            if not any(name in resources for name in names if self.blame.concerns({name})):
                self._retry()
        there, wanted, wants = set(), set(), self.subscription.wants
        for name in names:
            if (resource := resources.get(name)) is not None:
                if wants(name, on_demand=resource.on_demand):
                    wanted.add(name)
                elif wants(name):
                    continue  # N7: the wildcard does not show it any more
                there.add(name)
        self.dirty = joined(self.dirty, wanted)
        if (
            self.mortal
        ):  # N5: that the time is another, or that there is none, is told without another version
            other = {n for n, ttl in self.mortal.items() if n in wanted and resources[n].ttl_seconds != ttl}
            self.must = joined(self.must, other)
        # What is there again before its removal or its absence was said was never gone (O8, D18).
        self.gone, self.absent = without(self.gone, there), without(self.absent, wanted)
        self._forget_retired(there)
        if len(there) < len(names):
            self._lose(names - there, old)

    def ask(self, names: Names) -> None:
        """Take names that are asked for, perhaps again: what there is of them is sent, and not taken back."""
        self.must = joined(self.must, names)
        if self.gone:
            there = names - self.in_force.absent(names)
            self.gone = without(self.gone, there)
            self._forget_retired(there)

    def _lose(self, names: Names, old: Snapshot | None) -> None:
        """Take the names of resources that are there no longer; what the client holds is to be taken back."""
        lost = {name for name in names if name in self.held}
        self.dirty = without(self.dirty, names)
        self.gone = joined(self.gone, lost)
        if old is not None and lost:
            # Until the removal's turn has come (O2), an answer that lists everything must list it too (W9).
            before = old.resources(self.type_url)
            self.retired = self.retired.changed(
                {name: before[name] for name in lost if name in before and name not in self.retired}
            )

    def drop(self, names: AbstractSet[ResourceName]) -> None:
        """Forget names that the client no longer wants."""
        self.hold(dict.fromkeys(name for name in names if name in self.held))
        self._forget_retired(names)
        self.dirty, self.must = without(self.dirty, names), without(self.must, names)
        self.gone, self.absent = without(self.gone, names), without(self.absent, names)
        if self.blame is not None and self.blame.concerns(names):
            self.blame.accept(names)
            self._retry()
            self.blame = self.blame or None

    def drop_unwanted(self) -> None:
        """Forget what only a wildcard asked for, when it has ended, and what has not been sent of it."""
        known = {*self.held, *self.dirty, *self.must, *self.gone, *self.absent}
        self.drop({name for name in known if not self.subscription.wants(name)})

    def hold(self, changes: Mapping[ResourceName, Version | None]) -> None:
        """Take it that the client holds these versions now (None: nothing of that name)."""
        if changes:
            self.held = self.held.towards(self.in_force, changes)

    def take_news(self, snapshot: Snapshot) -> tuple[Sequence[Resource], Sequence[Resource]]:
        """Return what must be sent, by name, and which of it the client does not hold so.

        All of it counts as held, and nothing is pending after. What was rejected is not sent again.
        """
        must, all_must = self.must, self.all_must
        if all_must or self.all_dirty:
            changed = news = wanted = self.all_wanted(snapshot)
        else:
            changed = news = wanted = self._wanted(snapshot, self.dirty | must)
        if self.held or self.blame is not None:
            # What was rejected is held in no version, and so differs from any: what the client refused would
            # be sent again with each snapshot (W6, D12). Asked for by name it is sent all the same.
            held, rejected = self.held, self.rejected
            changed = news = [
                each
                for each in wanted
                if held.get(each.name) != each.version
                and (not rejected or all_must or each.name in must or rejected.get(each.name) != each.version)
            ]
            if all_must:
                news = wanted
            elif must:
                # What is asked for anew is sent though it is held so (W8, D3), and is no change: nothing that
                # the client does about a changed resource will follow, and so no endpoints need to (O3).
                sent = {each.name for each in changed} | must
                news = [each for each in wanted if each.name in sent]
        if changed and not self.held and len(changed) == len(self.in_force):
            self.held = self.in_force  # all there is, as at first
        else:
            self.hold({each.name: each.version for each in changed})
        self.dirty = self.must = NO_NAMES
        self.all_dirty = self.all_must = False
        return news, changed

    def _wanted(self, snapshot: Snapshot, names: Names) -> Sequence[Resource]:
        """Return the resources of these names that there are, in their order; the snapshot's own if all."""
        resources = snapshot.resources(self.type_url)
        if len(names) * 4 <= len(resources):
            return [resources[name] for name in sorted(names) if name in resources]
        there = names - resources.absent(names)
        if len(there) == len(resources):
            return snapshot.ordered(self.type_url)
        return [resources[name] for name in sorted(there)]

    def all_wanted(self, snapshot: Snapshot) -> Sequence[Resource]:
        """Return all that is there and that the client wants, in the order of names."""
        names = self.subscription.names
        if names is self.in_force:
            return snapshot.ordered(self.type_url)
        if not self.subscription.wildcard:
            return self._wanted(snapshot, frozenset(names))
        if not names or not snapshot.on_demand(self.type_url):
            return snapshot.visible(self.type_url)
        return [r for r in snapshot.ordered(self.type_url) if r.name in names or not r.on_demand]

    def resume(self, held: Mapping[ResourceName, Version]) -> None:
        """Take what a client says it holds when it comes."""
        self.hold(held)
        self.resumed, self.resumed_text = len(held), text_bytes(held.values())
        self.resumed_text += text_bytes(held.keys() - self.subscription.names.keys())

    def take_absent(self) -> list[ResourceName]:
        """Return names asked for that are not there, as many as are told at once, and forget them."""
        if not self.absent:
            return []
        told = first_of(self.absent, TOLD_AT_ONCE)
        self.absent = without(self.absent, frozenset(told))
        return told

    def take_removals(self, room: int | None = None) -> list[ResourceName]:
        """Return the names to take back, sorted, those there is room for, and forget them.

        They stay subscribed to.
        """
        if not self.gone:
            return []
        removed = sorted(self.gone) if room is None else first_of(self.gone, room)
        self.drop(frozenset(removed))
        return removed

    def _forget_retired(self, names: AbstractSet[ResourceName]) -> None:
        if self.retired and not names.isdisjoint(self.retired):
            self.retired = self.retired.changed(dict.fromkeys(names & self.retired.keys())) or NO_RESOURCES

    def _reject(self, response: Response, rejection: Rejection) -> None:
        """D12: the client may hold what it had, or what it was sent; of what it rejected it has neither."""
        if self.blame is None:
            self.blame = Blame()
        self.blame.rejection = rejection
        names, suspected = blamed(response, rejection)
        # But not what the client has dropped since it was sent: nothing would ever end that rejection.
        self.blame.rejected.update((name, version) for name, version in names.items() if name in self.held)
        overtaken, unsure = False, set()
        for resource in response.resources:
            held = self.held.get(resource.name)
            if held not in (resource.version, NO_VERSION):
                overtaken = True  # changed or dropped since: perhaps that was the bad one
            elif resource.name in names or resource.name in suspected:
                unsure.add(resource.name)
        self.hold(dict.fromkeys(unsure, NO_VERSION))
        self.blame.suspect(suspected & unsure)
        if overtaken:
            self._retry()
        if response.resources:  # what was to be removed may be there still, for the sake of a bad neighbour
            self.gone = joined(self.gone, (name for name in response.removed if not self._is_due(name)))

    def _is_due(self, name: ResourceName) -> bool:
        """Say whether the client has this name, or is about to be sent it."""
        if name in self.held or name in self.dirty or name in self.must:
            return True
        return (self.all_dirty or self.all_must) and name in self.in_force and self.subscription.wants(name)

    def _retry(self) -> None:
        if self.blame is not None:
            self.must = joined(self.must, self.blame.suspected)
            self.blame.retry = False


def _with(nonce: Nonce, responses: tuple[Response, ...]) -> Response | None:
    for each in responses:  # hardly ever more than one
        if each.nonce == nonce:
            return each
    return None


def _without(responses: tuple[Response, ...], response: Response) -> tuple[Response, ...]:
    return tuple(each for each in responses if each is not response) if len(responses) > 1 else ()
