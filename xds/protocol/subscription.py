"""What a client asks for of one type, in each variant of the protocol.

Rules W12, W13, D1, D7, D8 of docs/xds-rules.md; the source is "How the client specifies what resources to
return" in Envoy's xDS protocol page.
"""

from dataclasses import dataclass, field

from xds.protocol.name_sets import text_bytes
from xds.protocol.resource import CLUSTER, LISTENER, ResourceName, TypeUrl

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


_NO_CHANGE = Change()


@dataclass(slots=True)
class Subscription:
    """The names of one type that a client wants; with `wildcard`, all the others as well.

    `text` is how many bytes of memory the names' own text takes.
    """

    type_url: TypeUrl
    names: set[ResourceName] = field(default_factory=set)
    wildcard: bool = False
    text: int = 0
    _asked: bool = False
    _named: bool = False
    _last: tuple[ResourceName, ...] | None = None

    def wants(self, name: ResourceName, *, on_demand: bool = False) -> bool:
        """Say whether the client wants that resource; one on demand must have been named (N7)."""
        return name in self.names or (self.wildcard and not on_demand)

    def replace(self, names: tuple[ResourceName, ...]) -> Change:
        """Take a state-of-the-world request's names.

        No names at all mean everything only for LDS and CDS, and only until a name was sent (W12);
        for any other type, and afterwards, they mean nothing (W13).
        """
        # An ACK: by far the most frequent request, and it may list thousands.
        if names is self._last or names == self._last:
            return _NO_CHANGE
        self._last = names
        new = set(names)
        self._named = self._named or bool(new)
        wildcard = WILDCARD in new or (not self._named and self.type_url in FULL_STATE)
        new.discard(WILDCARD)
        change = Change(
            frozenset(new - self.names),
            frozenset(self.names - new),
            wildcard and not self.wildcard,
            self.wildcard and not wildcard,
        )
        self.names, self.wildcard = new, wildcard
        self.text += text_bytes(change.added) - text_bytes(change.dropped)
        return change

    def change(self, subscribe: tuple[ResourceName, ...], unsubscribe: tuple[ResourceName, ...]) -> Change:
        """Take an incremental request's lists, the additions first (D1).

        A name asked for again is among the added: the client may have forgotten it (D3). A first request
        that subscribes to nothing is a wildcard, for LDS and CDS only (D7, D8); unlike in state of the
        world it lasts until `*` is unsubscribed.
        """
        first, self._asked = not self._asked, True
        if not first and not subscribe and not unsubscribe:
            return _NO_CHANGE
        wanted, unwanted = set(subscribe), set(unsubscribe)
        wildcard = self.wildcard or WILDCARD in wanted
        wildcard = wildcard or (first and not wanted and self.type_url in FULL_STATE)
        wildcard = wildcard and WILDCARD not in unwanted
        wanted.discard(WILDCARD)
        unwanted.discard(WILDCARD)
        self.text += text_bytes(wanted - self.names)
        self.names |= wanted
        change = Change(
            frozenset(wanted - unwanted),
            frozenset(self.names & unwanted),
            wildcard and not self.wildcard,
            self.wildcard and not wildcard,
        )
        self.names -= unwanted
        self.text -= text_bytes(change.dropped)
        self.wildcard = wildcard
        return change
