"""The watches of a cluster: one for each kind and namespace, in a served version with a reader."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import structlog

from meshwright.kube.api import Api
from meshwright.kube.discovery import served
from meshwright.kube.errors import KubeError, Reason
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.pacing import PACING, Pacing
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key
from meshwright.mesh.kinds import NAMESPACE
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.guard import GuardedValue, guard
from meshwright.providers.kubernetes.book import Changes
from meshwright.providers.kubernetes.last_state import SavedWatch
from meshwright.providers.kubernetes.projection import projected
from meshwright.providers.kubernetes.resources import CORE, GROUPS, Plan, kind_of, planned
from meshwright.providers.kubernetes.running_watch import (
    REFUSED,
    Items,
    Place,
    RunningWatch,
    namespace_of,
    objects,
    order,
    places,
    shown,
)
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.moments import Moment

AGAIN: Final = timedelta(seconds=5)
"""Time until a failed discovery is repeated."""

_SHORTEST: Final = timedelta(milliseconds=1)

_log = structlog.get_logger("providers.kubernetes.source")


class Watches:
    """The watches of a cluster.

    `on_changes` is called on the event loop with changes, or with an empty mapping if only statistics or
    errors have changed. `known` are objects of a previous run, which stay until the server has answered.
    """

    def __init__(
        self,
        api: Api,
        scope: Scope,
        clock: Callable[[], datetime],
        on_changes: Callable[[Changes], None],
        *,
        hold: timedelta,
        discover: timedelta,
        monotonic: Callable[[], Moment],
        pacing: Pacing = PACING,
        known: Iterable[SavedWatch] = (),
    ) -> None:
        self._api = api
        self.scope = scope
        self._clock = clock
        self._on_changes = on_changes
        self._hold = hold
        self._discover = discover
        self._monotonic = monotonic
        self._pacing = pacing
        self._known = tuple(known)
        self._began_with_some = bool(self._known)
        self._woken = asyncio.Event()
        self.plan = Plan(
            {**CORE, **{kind_of(saved_watch.resource): saved_watch.resource for saved_watch in self._known}}
        )
        self.at: dict[Place, RunningWatch] = {}
        self._has_discovered = self._is_discovery_due = False
        self.undiscovered = ""
        self.undiscovered_since: datetime | None = None

    def kept(self) -> tuple[SavedWatch, ...]:
        """Return the known objects of all watches, to be saved for the next run."""
        known = ((place, *self.at[place].known) for place in sorted(self.at, key=order))
        return tuple(
            SavedWatch(*place, heard, dict(items)) for place, items, heard in known if heard is not None
        )

    def items_in(self, namespaces: Collection[str]) -> Changes:
        """Return the known objects of namespaces, including the Namespaces themselves."""
        result: dict[ObjectKey, Item[str] | None] = {}
        for (resource, _), watching in self.at.items():
            kind, items = kind_of(resource), watching.reflector.items
            result.update(
                objects(kind, {key: items[key] for key in items if namespace_of(kind, key) in namespaces})
            )
        return result

    def known(self) -> Changes:
        """Return the objects saved by the previous run."""
        return {
            key: item
            for saved_watch in self._known
            for key, item in objects(kind_of(saved_watch.resource), saved_watch.items).items()
        }

    def is_settled(self) -> bool:
        """Return whether everything available soon has arrived.

        This means all kinds except refused ones. With objects of a previous run, failing kinds are not
        awaited either.
        """
        return self._has_discovered and all(
            running_watch.reflector.listed.is_set()
            or running_watch.is_refused
            or (self._began_with_some and bool(running_watch.figures.error))
            for running_watch in self.at.values()
        )

    def is_any_known(self) -> bool:
        """Return whether any kind is listed or saved; with a selector, Namespaces must be listed."""
        listed = {
            kind_of(place[0])
            for place, running_watch in self.at.items()
            if running_watch.reflector.listed.is_set()
        }
        return self._began_with_some or (NAMESPACE in listed if self.scope.selector else bool(listed))

    async def run(self) -> None:
        """Watch all served kinds until cancelled; errors of the API server never end this method."""
        async with asyncio.TaskGroup() as group:
            self._follow(group)
            while True:
                await self._discovered(group)
                missing = (since + self._hold for since in self.plan.missing.values())
                again = min(self._discover, AGAIN) if self.undiscovered else self._discover
                due = min((self._monotonic() + again, *missing))
                while not self._is_discovery_due and self._monotonic() < due:
                    wait = max(self._due(due) - self._monotonic(), _SHORTEST)
                    with contextlib.suppress(TimeoutError):  # the time is up
                        async with asyncio.timeout(wait.total_seconds()):
                            await self._woken.wait()
                    self._woken.clear()
                    self._believe()

    async def _discovered(self, group: asyncio.TaskGroup) -> None:
        """Discover the served kinds and update the watches; after a failure, keep the previous ones."""
        self._is_discovery_due, text = False, ""
        try:
            resources = await served(self._api, GROUPS)
        except KubeError as error:
            text, self._has_discovered = str(error), self._began_with_some or error.reason in REFUSED
        else:
            self._has_discovered = True
            self.plan = planned(self.plan, resources, self._monotonic(), self._hold)
            self._follow(group)
        self.undiscovered = text
        self.undiscovered_since = (self.undiscovered_since or self._clock()) if text else None
        self._on_changes({})

    def _due(self, discovery: Moment) -> Moment:
        """Return the moment of the next discovery or of the next end of a hold, whichever is earlier."""
        held = (running_watch.emptied.held_since for running_watch in self.at.values())
        return min((discovery, *(duration + self._hold for duration in held if duration is not None)))

    def _follow(self, group: asyncio.TaskGroup) -> None:
        """Start watches added to the plan, and stop the removed ones."""
        wanted = set(places(self.plan, self.scope))
        before = {place: self.at.pop(place) for place in [*self.at] if place not in wanted}
        for place in sorted(wanted - self.at.keys(), key=order):
            self.at[place] = self._begun(place, *self._known_of(place, before), group)
        for (resource, _), watching in before.items():
            if watching.task is not None:
                watching.task.cancel()
            self._on_changes(watching.emptied.in_force)
            watching.emptied = GuardedValue({})  # a batch in progress may still add to it
            if kind_of(resource) not in self.plan.watched:
                self._on_changes(dict.fromkeys(objects(kind_of(resource), watching.reflector.items)))
        self._known = ()

    def _known_of(
        self, place: Place, before: Mapping[Place, RunningWatch]
    ) -> tuple[dict[Key, Item[str]], datetime | None]:
        """Return the known objects of a place and their time.

        They are from the watch of another version, or from a previous run.
        """
        kind, namespace = kind_of(place[0]), place[1]
        watched = ((item, *before[item].known) for item in before)
        kept = (
            ((saved_watch.resource, saved_watch.namespace), saved_watch.items, saved_watch.heard)
            for saved_watch in self._known
        )
        items, heard = dict[Key, Item[str]](), list[datetime]()
        for (resource, _), result, when in (*kept, *watched):
            if kind_of(resource) == kind and when is not None:
                heard.append(when)
                items.update(
                    (key, item)
                    for key, item in result.items()
                    if namespace in (None, namespace_of(kind, key))
                )
        return items, min(heard, default=None)

    def _begun(
        self, place: Place, known: Items, last_heard: datetime | None, group: asyncio.TaskGroup
    ) -> RunningWatch:
        resource, name = place
        kind = kind_of(resource)
        is_one = kind == NAMESPACE and name is not None
        reflector = Reflector(
            self._api,
            resource,
            lambda raw: projected(kind, resource.api_version, raw),
            self._clock,
            namespace=None if is_one else name,
            fields=f"metadata.name={name}" if is_one else "",
            pacing=self._pacing,
            # Without resource versions, since another release may have stored other fields of them.
            known={key: Item("", item.body) for key, item in known.items()},
        )
        watching = RunningWatch(reflector, last_heard)
        watching.task = group.create_task(
            reflector.run(lambda changes: self._pass_changes(place, watching, changes)),
            name=f"kubernetes watch of {shown(place)}",
        )
        return watching

    def _pass_changes(
        self, place: Place, watching: RunningWatch, changes: Mapping[Key, Item[str] | None]
    ) -> None:
        """Pass the changes of a watch on, unless a list has reported that all its objects are gone."""
        if kind_of(place[0]) not in self.plan.watched:
            return  # stopped during a batch; the objects are removed already
        figures = watching.figures
        if figures.errors.get(Reason.NOT_SERVED, 0) > watching.unserved:
            watching.unserved = figures.errors[Reason.NOT_SERVED]
            self._is_discovery_due = True
            self._woken.set()
        if figures.unread != watching.unread:
            watching.unread = figures.unread
            _log.warning("cluster object ignored", reason=figures.unread)
        items = {**watching.emptied.in_force, **objects(kind_of(place[0]), changes)}
        if watching.was_list or watching.emptied.in_force:
            had: GuardedValue[Collection[object]] = GuardedValue(items, watching.emptied.held_since)
            since = guard(had, watching.reflector.items, self._monotonic(), self._hold).held_since
            if since is not None:
                if watching.emptied.held_since is None:  # a new hold begins: compute the next due time again
                    self._woken.set()
                    self._on_changes({})
                watching.emptied = GuardedValue(items, since)
                return
        watching.emptied = GuardedValue({})
        self._on_changes(items)

    def _believe(self) -> None:
        """Accept the empty list of each watch for which the delay has ended."""
        for place, watching in self.at.items():
            if watching.emptied.held_since is not None:
                self._pass_changes(place, watching, {})
