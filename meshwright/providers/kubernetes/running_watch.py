"""One watch: what is watched where, how current it is, and what it is not believed yet."""

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
"""A kind, and the namespace in which it is watched: None for all."""

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
"""Why an answer was none, and will not be one when it is asked for again."""


@dataclass(slots=True, eq=False)
class RunningWatch:
    """A reflector at work. What it has was true at `kept` if it has not said anything itself yet.

    `emptied` are objects, all there were, that a list said to be gone, and since when that is not believed.
    """

    reflector: Reflector[str]
    kept: datetime | None = None
    unread: str = ""
    unserved: int = 0
    emptied: GuardedValue[Changes] = field(default_factory=lambda: GuardedValue({}))
    task: asyncio.Task[None] | None = None

    @property
    def figures(self) -> Figures:
        """What is known of its work."""
        return self.reflector.figures

    @property
    def heard(self) -> datetime | None:
        """When what it has was last known to be true."""
        return self.figures.heard or self.kept

    @property
    def was_list(self) -> bool:
        """Whether what was told last was a list, and no event."""
        last_list, last_event = self.figures.last_list, self.figures.last_event
        return last_list is not None and (last_event is None or last_event < last_list)

    @property
    def known(self) -> tuple[Items, datetime | None]:
        """What it has, and when that was last known to be true."""
        return self.reflector.items, self.heard

    @property
    def is_refused(self) -> bool:
        """Whether its last answer was one that will not be another one soon."""
        return self.figures.reason in REFUSED


def objects(kind: Kind, found: Mapping[Key, Item[str] | None]) -> dict[ObjectKey, Item[str] | None]:
    """Return what a reflector has by the keys of objects."""
    return {ObjectKey(kind, Namespace(namespace), name): item for (namespace, name), item in found.items()}


def namespace_of(kind: Kind, key: Key) -> str:
    """Return the namespace that an object belongs to: a Namespace belongs to itself."""
    return key[1] if kind == NAMESPACE else key[0]


def shown(place: Place) -> str:
    """Name what is watched as permissions have it, and where."""
    resource, namespace = place
    return f"{resource.name} in {namespace}" if namespace else resource.name


def order(place: Place) -> tuple[Resource, str]:
    """Return what places are sorted by."""
    return place[0], place[1] or ""


def places(plan: Plan, scope: Scope) -> Iterator[Place]:
    """Yield where what is planned is watched."""
    for kind, resource in plan.watched.items():
        if not resource.namespaced and kind != NAMESPACE:
            yield resource, None
            continue
        names: tuple[str | None, ...] = scope.namespaces or (None,)
        if scope.namespaces and kind in AT_HOME and scope.home:
            names = tuple(dict.fromkeys((*names, scope.home)))
        yield from ((resource, name) for name in names)
