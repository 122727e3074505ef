"""What proxies hold of one type, as far as it was sent: values that all who hold the same share.

Proxies of a group are sent the same, one after the other. What a response holds, and how it differs from
what was held before it, is worked out for the first of them.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import ne
from typing import Final, NamedTuple

from meshwright.delivery.history.push import Trigger
from meshwright.delivery.wave import Wave
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resources import Resources, identity
from xds.protocol.resources.versions import NO_VERSIONS, Versions
from xds.protocol.subscription import FULL_STATE
from xds.protocol.wire import Response
from xds.stream_status import Variant

CONTENTS: Final = 256
"""How many different responses are known again when the next proxy is sent the same."""


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """How a response changed what was held: names added, changed (with the version before), removed.

    `again` counts resources that were held in that very version. Where nothing was held before, `added` may
    be the mapping of all that is.
    """

    added: Collection[ResourceName]
    changed: tuple[tuple[ResourceName, Version], ...]
    removed: tuple[ResourceName, ...]
    again: int

    @property
    def is_news(self) -> bool:
        """Say whether anything is other than before."""
        return bool(self.added or self.changed or self.removed)


@dataclass(slots=True, eq=False)
class Content:
    """What a response holds: no bodies, only names and versions.

    `last` is the move that it made last, and `cause` what it was due to then, with what that was told by;
    `first` is how it moved those who held nothing, and what they hold after it. `delivery` is what was
    remembered of it last.
    """

    variant: Variant
    type_url: TypeUrl
    versions: Mapping[ResourceName, Version]
    removed: tuple[ResourceName, ...]
    last: VersionChanges | None = None
    first: "tuple[VersionChanges, weakref.ref[ClientVersions]] | None" = None
    cause: tuple[object, tuple[int, int, bool], tuple[Wave, ...]] | None = None
    delivery: "Delivery | None" = None

    @property
    def whole(self) -> bool:
        """Say whether the client drops what is not listed (rule W9)."""
        return self.variant is Variant.SOTW and self.type_url in FULL_STATE

    def let_go(self) -> None:
        """Forget what is asked by the next proxy alone that is sent the same: there will be none."""
        self.last = self.first = self.cause = self.delivery = None

    def names_any(self, names: frozenset[ResourceName]) -> bool:
        """Say whether one of these names is in it, sent or removed."""
        return any(name in self.versions for name in names) or not names.isdisjoint(self.removed)

    def is_within(self, names: set[ResourceName]) -> bool:
        """Say whether all that is in it, sent or removed, has one of these names."""
        if len(names) < max(len(self.versions), len(self.removed)):
            return False
        return names.issuperset(self.versions) and names.issuperset(self.removed)


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """What a response brought and what it was due to: one value for all who took the same step.

    `began` is when the first event was that led to it, None where none did.
    """

    content: Content
    move: VersionChanges
    due: tuple[Wave, ...] | Trigger
    version: Version
    size: int
    began: float | None


class ClientPosition(NamedTuple):
    """Where a proxy stood when it was sent something that waves led to, but for what it held.

    These are the waves that touched it, the newest moments when its stream opened and when it was last sent
    something of the type, and what the response says of itself.
    """

    touches: tuple[object, ...]
    opened: int
    seen: int
    version: Version
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """How a proxy that held what this is kept with took a content: so does whoever stood there as well.

    What was held then is alive only while somebody holds it, as ever.
    """

    content: Content
    stood: ClientPosition
    after: "weakref.ref[ClientVersions]"
    delivery: Delivery


class ClientVersions:
    """The versions of one type that a client holds. Unchangeable; `after` leads to the next.

    `taken` is how the last of those who held this took what it was sent.
    """

    __slots__ = ("__weakref__", "_next", "taken", "versions")

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self.taken: Transition | None = None
        # The next one is alive only while somebody holds it: a proxy that is stuck keeps no chain of them.
        self._next: tuple[Content, VersionChanges, weakref.ref[ClientVersions]] | None = None

    def after(
        self, content: Content, published: Callable[[], Versions]
    ) -> tuple[VersionChanges, "ClientVersions"]:
        """Return how a response changes this, and what is held then.

        `published` are the versions in force: in the common case they are the ones held, and one mapping
        serves for both.
        """
        if (known := self._known(content)) is not None:
            return known
        move, versions = _moved(self.versions, content, published())
        if move == content.last:  # as in another group: that one serves for both
            move = content.last
        content.last = move
        after = ClientVersions(versions)
        if self.versions:
            self._next = (content, move, weakref.ref(after))
        else:
            content.first = (move, weakref.ref(after))
        return move, after

    def _known(self, content: Content) -> "tuple[VersionChanges, ClientVersions] | None":
        """Return how others have gone on from here; from nothing all begin, and with any content."""
        if not self.versions:
            first = None if content.first is None else content.first[1]()
            return None if content.first is None or first is None else (content.first[0], first)
        if self._next is None or self._next[0] is not content or (after := self._next[2]()) is None:
            return None
        return self._next[1], after


NOTHING_HELD: Final = ClientVersions(NO_VERSIONS)


def _moved(before: Versions, content: Content, in_force: Versions) -> tuple[VersionChanges, Versions]:
    now = content.versions
    if not before:
        every = now if isinstance(now, Versions) else tuple(now)
        return VersionChanges(every, (), (), 0), NO_VERSIONS.towards(in_force, now)
    if not content.whole:
        names: Iterable[ResourceName] = (*now, *content.removed)
    elif isinstance(now, Versions):
        names = sorted(now.differing(before, ne))
    else:
        names = {**now, **before}
    removed = frozenset(content.removed)
    changes = {name: None if name in removed else now.get(name) for name in names}
    held = [(name, before.get(name), version) for name, version in changes.items()]
    changed = tuple((name, old) for name, old, version in held if version and old and version != old)
    added = tuple(name for name, old, version in held if version and old is None)
    gone = tuple(name for name, old, version in held if version is None and old is not None)
    moved = {name: version for name, old, version in held if version != old}
    return VersionChanges(added, changed, gone, len(now) - len(added) - len(changed)), before.towards(
        in_force, moved
    )


@dataclass(frozen=True, slots=True, eq=False)
class _KnownContent:
    """A content with what it was made from, a table or resources: while held, their identities are theirs."""

    content: Content
    held: Resources | tuple[Resource, ...]


class Contents:
    """The newest different responses, so that equal ones have one content."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], _KnownContent] = OrderedDict()
        self._last: tuple[Response, Content] | None = None

    def of(self, variant: Variant, response: Response) -> Content:
        """Return the content of a response, the same object for the same resources.

        Of a step that many streams take, one after the other, they are the very same tuple.
        """
        if self._last is not None:
            before, content = self._last
            if (
                before.resources is response.resources
                and before.removed == response.removed
                and content.variant is variant
                and content.type_url == response.type_url
            ):
                return content
        content = self._found(variant, response)
        self._last = (response, content)
        return content

    def _found(self, variant: Variant, response: Response) -> Content:
        key = (variant, response.type_url, response.removed, identity(response.made_of))
        if (known := self._known.get(key)) is not None:
            return known.content
        content = Content(variant, response.type_url, _versions(response), response.removed)
        self._known[key] = _KnownContent(content, response.made_of)
        if len(self._known) > CONTENTS:
            self._known.popitem(last=False)[1].content.let_go()
        return content


def _versions(response: Response) -> Mapping[ResourceName, Version]:
    """Return what is in a response by version; one of a whole table shares its versions."""
    if response.table is not None:
        return response.table.versions
    return {resource.name: resource.version for resource in response.resources}
