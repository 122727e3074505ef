"""Versions of one type held by proxies, as values shared by all proxies with equal versions.

Proxies of a group get the same responses one after the other. The content of a response, and its difference
from the versions held before, are computed for the first proxy and reused for the others.
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
"""Number of distinct responses recognised when the next proxy gets the same one."""


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """Difference between the versions held before and after a response.

    `changed` has names with the old version. `again` counts resources already held in this version. If the
    client held nothing before, `added` may be the mapping of all versions itself.
    """

    added: Collection[ResourceName]
    changed: tuple[tuple[ResourceName, Version], ...]
    removed: tuple[ResourceName, ...]
    again: int

    @property
    def is_news(self) -> bool:
        """Return whether the response added, changed or removed a resource of the proxy."""
        return bool(self.added or self.changed or self.removed)


@dataclass(slots=True, eq=False)
class Content:
    """Names and versions in a response, without bodies.

    The other fields cache the latest results for the next proxy: `last` is the latest difference, `first` the
    difference for clients without any versions (with the versions held afterwards), `cause` the waves with
    the key under which they were found, and `delivery` the latest record.
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
        """Return whether the proxy drops every resource not listed in the response (rule W9)."""
        return self.variant is Variant.SOTW and self.type_url in FULL_STATE

    def let_go(self) -> None:
        """Drop the cached differences, causes and record, because no further proxy will use this content."""
        self.last = self.first = self.cause = self.delivery = None

    def names_any(self, names: frozenset[ResourceName]) -> bool:
        """Return whether the response sends or removes one of these names."""
        return any(name in self.versions for name in names) or not names.isdisjoint(self.removed)

    def is_within(self, names: set[ResourceName]) -> bool:
        """Return whether `names` has the name of every resource sent or removed by the response."""
        if len(names) < max(len(self.versions), len(self.removed)):
            return False
        return names.issuperset(self.versions) and names.issuperset(self.removed)


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Record of a response and the causes, shared by all proxies after the same step.

    `began` is the time of the first event in seconds, or `None` for a requested response.
    """

    content: Content
    move: VersionChanges
    due: tuple[Wave, ...] | Trigger
    version: Version
    size: int
    began: float | None


class ClientPosition(NamedTuple):
    """State of a proxy just before a response, apart from the held versions.

    `touches` are the waves with changes of the group, `opened` is the newest moment when the stream opened,
    and `seen` the newest moment at the last response of the type; `version` and `size` belong to the
    response.
    """

    touches: tuple[object, ...]
    opened: int
    seen: int
    version: Version
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """A step of one proxy, reused for every proxy in the same position with the same versions.

    The reference is weak, so the versions afterwards live only as long as a proxy holds them.
    """

    content: Content
    stood: ClientPosition
    after: "weakref.ref[ClientVersions]"
    delivery: Delivery


class ClientVersions:
    """Versions of one type held by a client. Immutable; `after` returns the next value.

    `taken` is the latest step from here.
    """

    __slots__ = ("__weakref__", "_next", "taken", "versions")

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self.taken: Transition | None = None
        # Weak: a proxy that is stuck at an old version must not keep the whole chain of later versions alive.
        self._next: tuple[Content, VersionChanges, weakref.ref[ClientVersions]] | None = None

    def after(
        self, content: Content, published: Callable[[], Versions]
    ) -> tuple[VersionChanges, "ClientVersions"]:
        """Return the difference made by a response, and the versions held afterwards.

        `published` returns the versions in force. They are usually equal to the versions afterwards, and one
        mapping then serves for both.
        """
        if (known := self._known(content)) is not None:
            return known
        move, versions = _moved(self.versions, content, published())
        if move == content.last:  # equal to the difference in another group: share that object
            move = content.last
        content.last = move
        after = ClientVersions(versions)
        if self.versions:
            self._next = (content, move, weakref.ref(after))
        else:
            content.first = (move, weakref.ref(after))
        return move, after

    def _known(self, content: Content) -> "tuple[VersionChanges, ClientVersions] | None":
        """Return the step of another proxy from here with the same content, or `None`.

        The step of a client without versions is kept with the content, because every new client starts so,
        with any content.
        """
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
    """A content with the objects from which the content was made.

    Holding these keeps their `id` values unique.
    """

    content: Content
    made_of: Resources | tuple[Resource, ...]


class Contents:
    """Cache of the contents of the latest distinct responses, so equal responses share one content."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], _KnownContent] = OrderedDict()
        self._last: tuple[Response, Content] | None = None

    def content(self, variant: Variant, response: Response) -> Content:
        """Return the content of a response, shared by all responses with the same resources."""
        # Streams that take the same step one after the other get the very same tuple of resources.
        if self._last is not None:
            before, content = self._last
            if (
                before.resources is response.resources
                and before.removed == response.removed
                and content.variant is variant
                and content.type_url == response.type_url
            ):
                return content
        content = self._lookup_or_add(variant, response)
        self._last = (response, content)
        return content

    def _lookup_or_add(self, variant: Variant, response: Response) -> Content:
        key = (variant, response.type_url, response.removed, identity(response.made_of))
        if (known := self._known.get(key)) is not None:
            return known.content
        content = Content(variant, response.type_url, _versions(response), response.removed)
        self._known[key] = _KnownContent(content, response.made_of)
        if len(self._known) > CONTENTS:
            self._known.popitem(last=False)[1].content.let_go()
        return content


def _versions(response: Response) -> Mapping[ResourceName, Version]:
    """Return the versions in a response by name; a response of a whole table shares the table's mapping."""
    if response.table is not None:
        return response.table.versions
    return {resource.name: resource.version for resource in response.resources}
