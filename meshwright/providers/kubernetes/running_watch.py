"""One watch: its kind and namespace, its age, and an empty list that is held back."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from meshwright.kube.errors import Reason
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.reflector.statistics import Figures
from meshwright.kube.resource import Key, Resource
from meshwright.mesh.kinds import NAMESPACE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.guard import GuardedValue
from meshwright.providers.kubernetes.book import Changes
from meshwright.providers.kubernetes.resources import Plan
from meshwright.providers.kubernetes.scope import AT_HOME, Scope

Place = tuple[Resource, str | None]
"""A kind, and the namespace of its watch (None: all namespaces)."""

Items = Mapping[Key, Item[str]]

REFUSED: Final = frozenset(
    {
        Reason.CONFIG,
        Reason.CREDENTIALS,
        Reason.FORBIDDEN,
        Reason.INVALID,
        Reason.NONSENSE,
        Reason.NOT_SERVED,
        Reason.REFUSED,
        Reason.TOO_LARGE,
        Reason.UNAUTHORIZED,
    }
)
"""Reasons for a failure that a repetition would not change."""


@dataclass(slots=True, eq=False)
class RunningWatch:
    """A running reflector.

    `kept` is the time of saved objects, used until the reflector has an answer of its own. `emptied` are
    objects that a list reported as gone, all at once, with the moment of this report. They stay for a while.
    """

    reflector: Reflector[str]
    kept: datetime | None = None
    unread: str = ""
    unserved: int = 0
    emptied: GuardedValue[Changes] = field(default_factory=lambda: GuardedValue({}))
    task: asyncio.Task[None] | None = None

    @property
    def figures(self) -> Figures:
        """The age and the counters of the watch's reflector."""
        return self.reflector.figures

    @property
    def heard(self) -> datetime | None:
        """Return the time of the last news from the API server, or of the saved objects, or None."""
        return self.figures.heard or self.kept

    @property
    def was_list(self) -> bool:
        """Whether the last news from the API server was a list, not an event."""
        last_list, last_event = self.figures.last_list, self.figures.last_event
        return last_list is not None and (last_event is None or last_event < last_list)

    @property
    def known(self) -> tuple[Items, datetime | None]:
        """The known objects, and the time when they were last known to be true."""
        return self.reflector.items, self.heard

    @property
    def is_refused(self) -> bool:
        """Whether the API server refused the last request for a reason that a repetition does not change."""
        return self.figures.reason in REFUSED


def objects(kind: Kind, items: Mapping[Key, Item[str] | None]) -> dict[ObjectKey, Item[str] | None]:
    """Return a reflector's objects of one kind, by object key."""
    return {ObjectKey(kind, Namespace(namespace), name): item for (namespace, name), item in items.items()}


def namespace_of(kind: Kind, key: Key) -> str:
    """Return the namespace of an object; a Namespace belongs to itself."""
    return key[1] if kind == NAMESPACE else key[0]


def shown(place: Place) -> str:
    """Return a name of a watch for messages, such as `traffictargets.access.smi-spec.io in shop`."""
    resource, namespace = place
    return f"{resource.name} in {namespace}" if namespace else resource.name


def order(place: Place) -> tuple[Resource, str]:
    """Return the sort key of the place (resource and namespace) of a watch."""
    return place[0], place[1] or ""


def places(plan: Plan, scope: Scope) -> Iterator[Place]:
    """Yield the place (resource and namespace) of each watch in a plan."""
    for kind, resource in plan.watched.items():
        if not resource.namespaced and kind != NAMESPACE:
            yield resource, None
            continue
        names: tuple[str | None, ...] = scope.namespaces or (None,)
        if scope.namespaces and kind in AT_HOME and scope.home:
            names = tuple(dict.fromkeys((*names, scope.home)))
        yield from ((resource, name) for name in names)
