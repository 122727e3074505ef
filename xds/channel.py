"""One type's state on one stream: what was asked for, what the client holds, what was answered."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xds.resource import Resource, ResourceName, TypeUrl, Version
from xds.snapshot import Snapshot
from xds.subscription import FULL_STATE, Subscription
from xds.wire import ERROR_LIMIT, NO_VERSION, Nonce, Rejection, Response

UNANSWERED_LIMIT = 64
"""Responses remembered per type for a client that reads but does not answer."""


def blamed(response: Response, rejection: Rejection) -> dict[ResourceName, Version]:
    """Return which resources of a response a rejection is about, with their versions.

    Envoy applies the good clusters and listeners of a response that it rejects (N3), and names the bad
    ones; of other types it takes all or nothing. Words that name none, or were cut, blame all.
    """
    versions = {resource.name: resource.version for resource in response.resources}
    if response.type_url not in FULL_STATE or len(rejection.message) >= ERROR_LIMIT:
        return versions
    named = {
        name: version
        for name, version in versions.items()
        if re.search(rf"(?<![\w|/.-]){re.escape(name)}(?![\w|/.-])", rejection.message)
    }
    return named or versions


@dataclass(slots=True)
class Channel:
    """The conversation about one type (rule S5: types on a stream are independent).

    `held` is what the client was sent and not told to drop, by version; `dirty` are names whose resource
    may differ from it; `must` are names to be sent whatever the client holds; `gone` are names to be
    taken back once nothing refers to them; `retired` are their last resources, for the answers that list
    everything until then. `owed` says that an answer must be sent even if it is empty.
    """

    type_url: TypeUrl
    subscription: Subscription
    held: dict[ResourceName, Version] = field(default_factory=dict)
    dirty: set[ResourceName] = field(default_factory=set)
    must: set[ResourceName] = field(default_factory=set)
    gone: set[ResourceName] = field(default_factory=set)
    absent: set[ResourceName] = field(default_factory=set)
    retired: dict[ResourceName, Resource] = field(default_factory=dict)
    owed: bool = False
    last: Response | None = None
    unanswered: dict[Nonce, Response] = field(default_factory=dict)
    acked_version: Version = NO_VERSION
    rejection: Rejection | None = None
    rejected: dict[ResourceName, Version] = field(default_factory=dict)

    @property
    def has_news(self) -> bool:
        """Say whether there may be something to add or change."""
        return bool(self.owed or self.must or self.dirty or self.absent)

    @property
    def has_removals(self) -> bool:
        """Say whether there is something to take back."""
        return bool(self.gone)

    def answered(self, nonce: Nonce, rejection: Rejection | None) -> None:
        """Take an ACK or NACK; one of a response that is not remembered says nothing (W5, W6, D12).

        A rejection stands until what was rejected is accepted in another version or no longer wanted.
        """
        if (response := self.unanswered.pop(nonce, None)) is None:
            return
        if rejection is not None:
            self.rejection = rejection
            self.rejected.update(blamed(response, rejection))
            return
        self.acked_version = response.version
        if self.rejected:
            self._accept({resource.name for resource in response.resources})

    def sent(self, response: Response, *, supersedes: bool) -> None:
        """Remember a response that goes out now; with `supersedes` no answer to an older one counts."""
        if supersedes:
            self.unanswered.clear()
        elif len(self.unanswered) >= UNANSWERED_LIMIT:
            del self.unanswered[next(iter(self.unanswered))]
        self.unanswered[response.nonce] = response
        self.last = response

    def touch(self, names: frozenset[ResourceName], old: Snapshot | None, new: Snapshot) -> None:
        """Take the names that differ between two snapshots; what the client does not want is passed over."""
        resources = new.resources(self.type_url)
        for name in names:
            if name in resources:
                if self.subscription.wants(name, on_demand=resources[name].on_demand):
                    self.dirty.add(name)
                self.gone.discard(name)
                self.retired.pop(name, None)
            elif name in self.held:
                self.gone.add(name)
                self.dirty.discard(name)
                if old is not None and (last := old.resources(self.type_url).get(name)) is not None:
                    self.retired.setdefault(name, last)
            else:
                self.dirty.discard(name)

    def drop(self, names: AbstractSet[ResourceName]) -> None:
        """Forget names that the client no longer wants."""
        for name in names:
            self.held.pop(name, None)
            self.retired.pop(name, None)
        for pending in (self.dirty, self.must, self.gone, self.absent):
            pending.difference_update(names)
        self._accept(names)

    def drop_unwanted(self) -> None:
        """Forget what only a wildcard asked for, when it has ended."""
        self.drop({name for name in self.held if not self.subscription.wants(name)})

    def take_news(self, snapshot: Snapshot) -> list[Resource]:
        """Return what must be added or changed, by name, and count it as held; nothing is pending after."""
        resources = snapshot.resources(self.type_url)
        news = []
        for name in sorted(self.dirty | self.must):
            resource = resources.get(name)
            if resource is None:
                continue
            if name in self.must or self.held.get(name) != resource.version:
                news.append(resource)
                self.held[name] = resource.version
        self.dirty.clear()
        self.must.clear()
        return news

    def take_removals(self) -> list[ResourceName]:
        """Return the names to take back, sorted, and forget them; they stay subscribed to."""
        removed = sorted(self.gone)
        self.drop(frozenset(removed))
        return removed

    def _accept(self, names: AbstractSet[ResourceName]) -> None:
        for name in names & self.rejected.keys():
            del self.rejected[name]
        if not self.rejected:
            self.rejection = None
