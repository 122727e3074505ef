"""What proxies hold of one type, as far as it was sent: values that all who hold the same share.

Proxies of a group are sent the same, one after the other. What a response holds, and how it differs from
what was held before it, is worked out for the first of them.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from delivery.wave import Wave
from xds.protocol.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.subscription import FULL_STATE
from xds.protocol.wire import Response
from xds.server.status import Variant

CONTENTS: Final = 64
"""How many different responses are known again when the next proxy is sent the same."""

Versions = Mapping[ResourceName, Version]


@dataclass(frozen=True, slots=True)
class Move:
    """How a response changed what was held: names added, changed (with the version before), removed.

    `again` counts resources that were held in that very version.
    """

    added: tuple[ResourceName, ...]
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

    `last` is the move that it made last, and `cause` what it was due to then, with what that was told by.
    """

    variant: Variant
    type_url: TypeUrl
    versions: Versions
    removed: tuple[ResourceName, ...]
    last: Move | None = None
    cause: tuple[object, tuple[int, int, bool], tuple[Wave, ...]] | None = None

    @property
    def whole(self) -> bool:
        """Say whether the client drops what is not listed (rule W9)."""
        return self.variant is Variant.SOTW and self.type_url in FULL_STATE

    def names_any(self, names: frozenset[ResourceName]) -> bool:
        """Say whether one of these names is in it, sent or removed."""
        return not (names.isdisjoint(self.versions) and names.isdisjoint(self.removed))

    def is_within(self, names: set[ResourceName]) -> bool:
        """Say whether all that is in it, sent or removed, has one of these names."""
        return names.issuperset(self.versions) and names.issuperset(self.removed)


class Held:
    """The versions of one type that a client holds. Unchangeable; `after` leads to the next."""

    __slots__ = ("__weakref__", "_next", "versions")

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        # The next one is alive only while somebody holds it: a proxy that is stuck keeps no chain of them.
        self._next: tuple[Content, Move, weakref.ref[Held]] | None = None

    def after(self, content: Content, published: Callable[[], Versions]) -> tuple[Move, "Held"]:
        """Return how a response changes this, and what is held then.

        `published` are the versions in force: in the common case they are the ones held, and one mapping
        serves for both.
        """
        known = self._next
        if known is not None and known[0] is content and (found := known[2]()) is not None:
            return known[1], found
        move, versions = _moved(self.versions, content)
        if move == content.last:  # as in another group: that one serves for both
            move = content.last
        content.last = move
        in_force = published()
        after = Held(in_force if in_force == versions else versions)
        self._next = (content, move, weakref.ref(after))
        return move, after


NOTHING_HELD: Final = Held({})


def _moved(before: Versions, content: Content) -> tuple[Move, Versions]:
    now = content.versions
    if content.whole:
        after, gone = now, tuple(name for name in before if name not in now)
    else:
        gone = tuple(name for name in content.removed if name in before)
        after = {**before, **now}
        for name in content.removed:
            after.pop(name, None)
    changed = tuple(
        (name, held)
        for name, version in now.items()
        if (held := before.get(name)) is not None and held != version
    )
    added = tuple(name for name in now if name not in before)
    return Move(added, changed, gone, len(now) - len(added) - len(changed)), after


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A content with the resources it was made from: while they are held, their identities are theirs."""

    content: Content
    resources: tuple[Resource, ...]


class Contents:
    """The newest different responses, so that equal ones have one content."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], _Known] = OrderedDict()

    def of(self, variant: Variant, response: Response) -> Content:
        """Return the content of a response, the same object for the same resources."""
        key = (
            variant,
            response.type_url,
            response.removed,
            tuple(map(id, response.resources)),
        )
        if (known := self._known.get(key)) is not None:
            return known.content
        content = _content(variant, response)
        self._known[key] = _Known(content, response.resources)
        if len(self._known) > CONTENTS:
            self._known.popitem(last=False)
        return content


def _content(variant: Variant, response: Response) -> Content:
    versions = {resource.name: resource.version for resource in response.resources}
    return Content(variant, response.type_url, versions, response.removed)
