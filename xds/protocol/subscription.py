"""The subscription of a client to one type, in each variant of the protocol.

The module implements the rules W12, W13, D1, D7 and D8 of docs/understand/xds-rules.md. The source is "How
the client specifies what resources to return" in Envoy's xDS protocol page.
"""

from dataclasses import dataclass
from typing import Any

from xds.protocol.resources.layers import NO_LAYERS, Layers
from xds.protocol.resources.name_sets import NO_NAMES, names_of, text_bytes, text_of
from xds.protocol.type_urls import CLUSTER, LISTENER, ResourceName, TypeUrl

WILDCARD = ResourceName("*")
FULL_STATE = frozenset((LISTENER, CLUSTER))
"""Types with complete lists in state of the world; a request for them may omit names (wildcard)."""


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of a request on a subscription: names added and dropped, wildcard begun or ended."""

    added: frozenset[ResourceName] = frozenset()
    dropped: frozenset[ResourceName] = frozenset()
    began: bool = False
    ended: bool = False


NO_CHANGE = Change()


@dataclass(slots=True)
class Subscription:
    """The wanted names of one type. With `wildcard` the client wants all others as well.

    `text` is the memory of the text of the names in bytes.
    """

    type_url: TypeUrl
    names: Layers[ResourceName, Any] = NO_LAYERS
    wildcard: bool = False
    text: int = 0
    _has_requested: bool = False
    _named: bool = False
    _last: int | None = None

    def wants(self, name: ResourceName, *, on_demand: bool = False) -> bool:
        """Return whether the client wants a resource.

        An on-demand resource must have been requested by name (N7).
        """
        return (self.wildcard and not on_demand) or name in self.names

    def is_last(self, names: tuple[ResourceName, ...]) -> bool:
        """Return whether the last state-of-the-world request had the same names in the same order.

        This is true for an ACK, by far the most frequent request, which may list thousands of names. Only
        their hash is kept for the comparison.
        """
        return hash(names) == self._last

    def lacking(self, names: tuple[ResourceName, ...]) -> frozenset[ResourceName]:
        """Return the subscribed names missing in a new state-of-the-world request."""
        if self.is_last(names):
            return NO_NAMES
        listed = frozenset(names)
        return frozenset(name for name in self.names if name not in listed)

    def replace(
        self, names: tuple[ResourceName, ...], there: Layers[ResourceName, Any] = NO_LAYERS
    ) -> Change:
        """Apply the names of a state-of-the-world request; `there` are the existing resources of the type.

        An empty list means every resource, but only for LDS and CDS, and only before the first request with a
        name (W12). For other types, and later, it means an empty subscription (W13).
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
        """Apply the lists of an incremental request, additions first (D1).

        `there` are the existing resources.

        A name requested again counts as added, because the client may have forgotten the resource (D3). A
        first request without names is a wildcard for LDS and CDS only (D7, D8). Unlike in state of the world,
        the wildcard lasts until `*` is unsubscribed.
        """
        first, self._has_requested = not self._has_requested, True
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
        """Share the object `there` if the client wants exactly these names, as most clients do.

        This saves memory.
        """
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
    """Return the names without `*`; the same object if `*` is not among them."""
    return names - {WILDCARD} if WILDCARD in names else names
