"""State of one type on one stream: subscription, held versions, outstanding answers.

Thousands of streams exist, each with several types, and most of them are in equal states. Therefore possibly
equal values are immutable and shared between streams, and rare state (such as a rejection) is None unless
needed.
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
"""Memory in bytes of the names removed by one incremental response; more follow after the answer."""

OVERTAKEN_LIMIT = 8
"""Responses remembered per type after a newer one superseded them before an answer (state of the world)."""


@dataclass(slots=True)
class Channel:
    """The conversation about one type (rule S5: types on a stream are independent).

    - `client_versions` are the versions sent to the client and not removed; `in_force` are the current
      versions. Both are one object when the client has everything.
    - `dirty` are names with a possible difference from the held version. `must` are names to send whatever
      the client holds. `all_dirty` and `all_must` mean the same for every wanted name.
    - `gone` are names to remove when the last reference is gone. `retired` are their last resources, which
      complete lists must contain until then.
    - `absent` are requested names without a resource. `owed` is True if an answer is due, even an empty one.
    - `passed_over` are names dropped by stale requests (W4, W8).
    - `resumed` is the number of resources listed by a reconnecting client, and `resumed_text` the memory of
      their text in bytes. `removals_text` is the memory of the names in unanswered removals.
    """

    type_url: TypeUrl
    subscription: Subscription
    in_force: Versions = NO_VERSIONS
    client_versions: Versions = NO_VERSIONS
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
    removals_text: int = 0
    mortal: Lives = field(default_factory=lambda: NOTHING)

    @property
    def has_news(self) -> bool:
        """Return whether there may be a resource to add or change at the client."""
        return bool(self.owed or self.must or self.dirty or self.absent or self.all_dirty or self.all_must)

    @property
    def has_removals(self) -> bool:
        """Return whether there is a resource to remove at the client."""
        return bool(self.gone)

    @property
    def rejection(self) -> Rejection | None:
        """Return the client's rejection (NACK) that still applies, or None."""
        return None if self.blame is None else self.blame.rejection

    @property
    def rejected(self) -> Mapping[ResourceName, Version]:
        """Return the versions in the rejection that still applies, by resource name."""
        return NOTHING if self.blame is None else self.blame.rejected

    def on_the_way(self) -> set[ResourceName]:
        """Return the names of resources in responses without an ACK or NACK so far.

        Heartbeats are left out, because they contain no changed resources.
        """
        sent = (response for response in self.unanswered if not response.heartbeat)
        return {resource.name for response in sent for resource in response.resources}

    def accepted(self, name: ResourceName) -> Version:
        """Return the version that the client holds and has not rejected, or NO_VERSION.

        A resource listed by a reconnecting client counts as accepted.
        """
        if name in self.rejected or name in self.on_the_way():
            return NO_VERSION
        return self.client_versions.get(name, NO_VERSION)

    def awaiting(self, nonce: Nonce) -> Response | None:
        """Return the sent response that a request with this nonce acknowledges or rejects, or None."""
        return _with(nonce, self.unanswered) or _with(nonce, self.overtaken)

    def acknowledged(self, nonce: Nonce) -> Response | None:
        """Process an ACK if it has no further effect; return its response, or None."""
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
        """Process an ACK or NACK. An answer to a forgotten response is ignored (W5, W6, D12).

        A rejection stays in force until the rejected resource is accepted in another version, or not wanted
        any more.
        """
        if (response := _with(nonce, self.unanswered)) is None:
            return
        self.unanswered = _without(self.unanswered, response)
        if response.removed:
            self.removals_text -= text_bytes(response.removed)
        self.overtaken = ()  # answers arrive in order, so none can follow for these
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
        """Process the answer to a superseded response: a late rejection must not be lost."""
        if (response := _with(nonce, self.overtaken)) is not None:
            self.overtaken = _without(self.overtaken, response)
            if rejection is not None:
                self._reject(response, rejection)

    def sent(self, response: Response, *, supersedes: bool) -> None:
        """Record a response sent now.

        With `supersedes` answers to earlier ones are not awaited any more.
        """
        if supersedes:
            self.overtaken = (*self.overtaken, *self.unanswered)[-OVERTAKEN_LIMIT:]
            self.unanswered = ()
        else:
            self.mortal = lives_after(self.mortal, self.client_versions, response)
        if len(self.unanswered) >= UNANSWERED_LIMIT:
            self.removals_text -= text_bytes(self.unanswered[0].removed)
            self.unanswered = self.unanswered[1:]
        if response.removed:
            self.removals_text += text_bytes(response.removed)
        self.unanswered = (*self.unanswered, response)
        self.sent_nonce, self.sent_version = response.nonce, response.version

    def touch(self, names: frozenset[ResourceName], old: Snapshot | None, new: Snapshot) -> None:
        """Mark the names with a difference between two snapshots, as far as the client wants them."""
        resources = new.resources(self.type_url)
        before, self.in_force = self.in_force, resources.versions
        if self.subscription.names is before and all(n in before and n in resources for n in names):
            self.subscription.names = (
                self.in_force
            )  # equal names: share the object, as in Subscription.settle
        if self.blame is not None and self.blame.suspected and self.blame.concerns(names):
            # D12: the fault may be repaired now. Its neighbours are sent again after the next ACK.
            self.blame.retry = True
            if not any(name in resources for name in names if self.blame.concerns({name})):
                self._retry()
        there, wanted, wants = set(), set(), self.subscription.wants
        for name in names:
            if (resource := resources.get(name)) is not None:
                if wants(name, on_demand=resource.on_demand):
                    wanted.add(name)
                elif wants(name):
                    continue  # N7: it has become on-demand, so the wildcard does not cover it
                there.add(name)
        self.dirty = joined(self.dirty, wanted)
        if self.mortal:  # N5: a changed time to live is sent although the version is equal
            other = {n for n, ttl in self.mortal.items() if n in wanted and resources[n].ttl_seconds != ttl}
            self.must = joined(self.must, other)
        # A resource that is back before its removal or absence was sent was never gone (O8, D18).
        self.gone, self.absent = without(self.gone, there), without(self.absent, wanted)
        self._forget_retired(there)
        if len(there) < len(names):
            self._lose(names - there, old)

    def ask(self, names: Names) -> None:
        """Mark names requested by the client, perhaps again. Existing ones are sent and not removed."""
        self.must = joined(self.must, names)
        if self.gone:
            there = names - self.in_force.absent(names)
            self.gone = without(self.gone, there)
            self._forget_retired(there)

    def _lose(self, names: Names, old: Snapshot | None) -> None:
        """Mark names without a resource in the snapshot; those held by the client must be removed."""
        lost = {name for name in names if name in self.client_versions}
        self.dirty = without(self.dirty, names)
        self.gone = joined(self.gone, lost)
        if old is not None and lost:
            # Until the removal is due (O2), a complete list must contain the resource (W9).
            before = old.resources(self.type_url)
            self.retired = self.retired.changed(
                {name: before[name] for name in lost if name in before and name not in self.retired}
            )

    def drop(self, names: AbstractSet[ResourceName]) -> None:
        """Forget names not wanted by the client any more."""
        self.hold(dict.fromkeys(name for name in names if name in self.client_versions))
        self._forget_retired(names)
        self.dirty, self.must = without(self.dirty, names), without(self.must, names)
        self.gone, self.absent = without(self.gone, names), without(self.absent, names)
        if self.blame is not None and self.blame.concerns(names):
            self.blame.accept(names)
            self._retry()
            self.blame = self.blame or None

    def drop_unwanted(self) -> None:
        """Forget names covered only by a former wildcard."""
        known = {*self.client_versions, *self.dirty, *self.must, *self.gone, *self.absent}
        self.drop({name for name in known if not self.subscription.wants(name)})

    def hold(self, changes: Mapping[ResourceName, Version | None]) -> None:
        """Record that the client now holds these versions (None for a dropped name)."""
        if changes:
            self.client_versions = self.client_versions.towards(self.in_force, changes)

    def take_news(self, snapshot: Snapshot) -> tuple[Sequence[Resource], Sequence[Resource]]:
        """Return the resources to send, and the new ones among them; mark all as held.

        Afterwards the channel is without pending work. A rejected version is not sent again, unless requested
        by name.
        """
        must, all_must = self.must, self.all_must
        if all_must or self.all_dirty:
            changed = news = wanted = self.all_wanted(snapshot)
        else:
            changed = news = wanted = self._wanted(snapshot, self.dirty | must)
        if self.client_versions or self.blame is not None:
            # A rejected resource is held in no version, so it differs from any. Without this test it would be
            # sent again with each snapshot (W6, D12). It is sent if the client requests it by name.
            held, rejected = self.client_versions, self.rejected
            changed = news = [
                resource
                for resource in wanted
                if held.get(resource.name) != resource.version
                and (
                    not rejected
                    or all_must
                    or resource.name in must
                    or rejected.get(resource.name) != resource.version
                )
            ]
            if all_must:
                news = wanted
            elif must:
                # A name that is requested again is sent in the version that is held (W8, D3). This is not a
                # change: a cluster does not warm again, so its endpoints need not follow (O3).
                sent = {resource.name for resource in changed} | must
                news = [resource for resource in wanted if resource.name in sent]
        if changed and not self.client_versions and len(changed) == len(self.in_force):
            self.client_versions = self.in_force  # everything, as in the first response
        else:
            self.hold({resource.name: resource.version for resource in changed})
        self.dirty = self.must = NO_NAMES
        self.all_dirty = self.all_must = False
        return news, changed

    def _wanted(self, snapshot: Snapshot, names: Names) -> Sequence[Resource]:
        """Return the existing resources of these names, sorted; the snapshot's own tuple if these are all."""
        resources = snapshot.resources(self.type_url)
        if len(names) * 4 <= len(resources):
            return [resources[name] for name in sorted(names) if name in resources]
        there = names - resources.absent(names)
        if len(there) == len(resources):
            return snapshot.ordered(self.type_url)
        return [resources[name] for name in sorted(there)]

    def all_wanted(self, snapshot: Snapshot) -> Sequence[Resource]:
        """Return every existing resource that the client wants, sorted by name."""
        names = self.subscription.names
        if names is self.in_force:
            return snapshot.ordered(self.type_url)
        if not self.subscription.wildcard:
            return self._wanted(snapshot, frozenset(names))
        if not names or not snapshot.on_demand(self.type_url):
            return snapshot.visible(self.type_url)
        return [r for r in snapshot.ordered(self.type_url) if r.name in names or not r.on_demand]

    def resume(self, client_versions: Mapping[ResourceName, Version]) -> None:
        """Record the versions listed by a reconnecting client."""
        self.hold(client_versions)
        self.resumed, self.resumed_text = len(client_versions), text_bytes(client_versions.values())
        self.resumed_text += text_bytes(client_versions.keys() - self.subscription.names.keys())

    def take_absent(self) -> list[ResourceName]:
        """Return requested names without a resource, at most TOLD_AT_ONCE bytes of them, and forget them."""
        if not self.absent:
            return []
        resource_names = first_of(self.absent, TOLD_AT_ONCE)
        self.absent = without(self.absent, frozenset(resource_names))
        return resource_names

    def take_removals(self, room: int | None = None) -> list[ResourceName]:
        """Return the names to remove, sorted, at most `room` bytes of them, and forget them.

        The names stay subscribed.
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
        """Record a rejection (D12).

        For each resource of the response the client may hold the earlier version or the new one, so the held
        version becomes unknown (NO_VERSION).
        """
        if self.blame is None:
            self.blame = Blame()
        self.blame.rejection = rejection
        names, suspected = blamed(response, rejection)
        # Names that the client has dropped meanwhile are left out, because nothing would end their rejection.
        self.blame.rejected.update(
            (name, version) for name, version in names.items() if name in self.client_versions
        )
        overtaken, unsure = False, set()
        for resource in response.resources:
            held = self.client_versions.get(resource.name)
            if held not in (resource.version, NO_VERSION):
                overtaken = True  # changed or dropped since: this may have been the bad one
            elif resource.name in names or resource.name in suspected:
                unsure.add(resource.name)
        self.hold(dict.fromkeys(unsure, NO_VERSION))
        self.blame.suspect(suspected & unsure)
        if overtaken:
            self._retry()
        if response.resources:  # the rejection of a neighbour may have prevented the removals
            self.gone = joined(self.gone, (name for name in response.removed if not self._is_due(name)))

    def _is_due(self, name: ResourceName) -> bool:
        """Return whether the client has this name, or is about to receive it."""
        if name in self.client_versions or name in self.dirty or name in self.must:
            return True
        return (self.all_dirty or self.all_must) and name in self.in_force and self.subscription.wants(name)

    def _retry(self) -> None:
        if self.blame is not None:
            self.must = joined(self.must, self.blame.suspected)
            self.blame.retry = False


def _with(nonce: Nonce, responses: tuple[Response, ...]) -> Response | None:
    for response in responses:  # hardly ever more than one
        if response.nonce == nonce:
            return response
    return None


def _without(responses: tuple[Response, ...], response: Response) -> tuple[Response, ...]:
    return tuple(item for item in responses if item is not response) if len(responses) > 1 else ()
