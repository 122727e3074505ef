"""What a client asks for of one type, in each variant of the protocol.

Rules W12, W13, D1, D7, D8 of docs/xds-rules.md; the source is "How the client specifies what resources to
return" in Envoy's xDS protocol page.
"""

from dataclasses import dataclass
from typing import Any

from xds.protocol.resources.layers import NO_LAYERS, Layers
from xds.protocol.resources.name_sets import NO_NAMES, names_of, text_bytes, text_of
from xds.protocol.type_urls import CLUSTER, LISTENER, ResourceName, TypeUrl

WILDCARD = ResourceName("*")
FULL_STATE = frozenset((LISTENER, CLUSTER))
"""The types whose answers list everything in state of the world, and that may be asked for without a name."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a request did to a subscription: names asked for and dropped, the wildcard begun or ended."""

    added: frozenset[ResourceName] = frozenset()
    dropped: frozenset[ResourceName] = frozenset()
    began: bool = False
    ended: bool = False


NO_CHANGE = Change()


@dataclass(slots=True)
class Subscription:
    """The names of one type that a client wants; with `wildcard`, all the others as well.

    `text` is how many bytes of memory the names' own text takes.
    """

    type_url: TypeUrl
    names: Layers[ResourceName, Any] = NO_LAYERS
    wildcard: bool = False
    text: int = 0
    _asked: bool = False
    _named: bool = False
    _last: int | None = None

    def wants(self, name: ResourceName, *, on_demand: bool = False) -> bool:
        """Say whether the client wants that resource; one on demand must have been named (N7)."""
        return (self.wildcard and not on_demand) or name in self.names

    def is_last(self, names: tuple[ResourceName, ...]) -> bool:
        """Say whether a state-of-the-world request had these names, in this order, last.

        An ACK has: by far the most frequent request, and it may list thousands. They are not kept to compare.
        """
        return hash(names) == self._last

    def lacking(self, names: tuple[ResourceName, ...]) -> frozenset[ResourceName]:
        """Return the names wanted that a state-of-the-world request does not have."""
        if self.is_last(names):
            return NO_NAMES
        listed = frozenset(names)
        return frozenset(name for name in self.names if name not in listed)

    def replace(
        self, names: tuple[ResourceName, ...], there: Layers[ResourceName, Any] = NO_LAYERS
    ) -> Change:
        """Take a state-of-the-world request's names; `there` is what there is of the type.

        No names at all mean everything only for LDS and CDS, and only until a name was sent (W12);
        for any other type, and afterwards, they mean nothing (W13).
        """
        if self.is_last(names):
            return NO_CHANGE
        self._last = hash(names)
        new = names_of(names)
        self._named = self._named or bool(new)
        wildcard = WILDCARD in new or (not self._named and self.type_url in FULL_STATE)
        new = _but_wildcard(new)
        change = Change(
            self.names.absent(new),
            frozenset(name for name in self.names if name not in new),
            wildcard and not self.wildcard,
            self.wildcard and not wildcard,
        )
        self._take(change.added, change.dropped, there, names)
        self.wildcard = wildcard
        return change

    def change(
        self,
        subscribe: tuple[ResourceName, ...],
        unsubscribe: tuple[ResourceName, ...],
        there: Layers[ResourceName, Any] = NO_LAYERS,
    ) -> Change:
        """Take an incremental request's lists, the additions first (D1); `there` is what there is.

        A name asked for again is among the added: the client may have forgotten it (D3). A first request
        that subscribes to nothing is a wildcard, for LDS and CDS only (D7, D8); unlike in state of the
        world it lasts until `*` is unsubscribed.
        """
        first, self._asked = not self._asked, True
        if not first and not subscribe and not unsubscribe:
            return NO_CHANGE
        wanted, unwanted = names_of(subscribe), names_of(unsubscribe)
        wildcard = self.wildcard or WILDCARD in wanted
        wildcard = wildcard or (first and not wanted and self.type_url in FULL_STATE)
        wildcard = wildcard and WILDCARD not in unwanted
        added, unwanted = _but_wildcard(wanted), _but_wildcard(unwanted)
        dropped = frozenset(name for name in unwanted if name in added or name in self.names)
        change = Change(
            added - unwanted if unwanted else added,
            dropped,
            wildcard and not self.wildcard,
            self.wildcard and not wildcard,
        )
        new, old = self.names.absent(change.added), frozenset(name for name in dropped if name in self.names)
        self._take(new, old, there, subscribe)
        self.wildcard = wildcard
        return change

    def settle(self, there: Layers[ResourceName, Any]) -> None:
        """Share the names with what is there, if those are the ones that the client wants: most want all."""
        if self.names is not there and self.names.has_keys_of(there):
            self.names = there

    def _take(
        self,
        added: frozenset[ResourceName],
        dropped: frozenset[ResourceName],
        there: Layers[ResourceName, Any],
        listed: tuple[ResourceName, ...],
    ) -> None:
        self.text += text_of(added, listed) - text_bytes(dropped)
        if not self.names and len(added) == len(there) and not there.absent(added):
            self.names = there
        elif added or dropped:
            changes: dict[ResourceName, object] = dict.fromkeys(sorted(added), True)
            changes.update(dict.fromkeys(dropped))
            self.names = Layers(*self.names.laid_over(changes)) if self.names else Layers(changes)
            self.settle(there)


def _but_wildcard(names: frozenset[ResourceName]) -> frozenset[ResourceName]:
    """Return the names alone; the very set where there is no wildcard among them, as nearly always."""
    return names - {WILDCARD} if WILDCARD in names else names
