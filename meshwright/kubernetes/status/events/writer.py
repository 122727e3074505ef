"""Writer of Events about objects without conditions, with limits on writes and on open problems."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Final

from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Raw
from meshwright.kubernetes.status import event as events
from meshwright.kubernetes.status.attempts import Attempts, Budget, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.event import (
    EVENTS,
    MORE,
    Action,
    EventAction,
    Notice,
    WrittenEvent,
    due,
    namespace_of,
    notices,
)
from meshwright.mesh.kinds import NAMESPACE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 60.0
"""Events written in a minute, and in one burst."""

OPEN: Final = 500
"""Open problems with an Event of their own. One Event for each namespace gives the number of the others."""

SETTLED: Final = 60.0
"""Seconds after the start without reports of resolved problems, until proxies have reconnected."""

FORGOTTEN: Final = timedelta(minutes=65)
"""Age at which an Event without renewals is deleted. The API server keeps Events for an hour by default."""

_Key = tuple[str, bool]


class EventWriter:
    """Writer of Events, with a cache of Meshwright's Events in the cluster."""

    def __init__(self, cluster: Cluster, attempts: Attempts, began: float) -> None:
        self._cluster, self._attempts = cluster, attempts
        self._standing, self._clock = cluster.standing, cluster.clock
        self._settled = began + SETTLED
        self._written: dict[ObjectKey, dict[_Key, WrittenEvent]] = {}
        self._open: dict[ObjectKey, int] = {}
        self._beyond: dict[ObjectKey, int] = {}
        self._budget = Budget(A_MINUTE, A_MINUTE)

    async def remember(self, namespace: str | None) -> None:
        """Read Meshwright's Events in a namespace (None: in all) from the cluster. Raises WritePostponed."""
        ours = f"{events.HOME}={self._cluster.reporter.home}"
        listed = await self._attempts.make(
            WrittenKind.EVENT,
            "list events",
            lambda: self._cluster.api.list(EVENTS, namespace, labels=ours),
            *_within(namespace),
        )
        for written_event in map(events.read, listed["items"]):
            if written_event is not None:
                self._keep(written_event)
        # Count all open problems before the first report, because the limit applies to all of them together.
        self._open = {
            about: n
            for about, written_events in self._written.items()
            if (n := events.standing(written_events))
        }
        self._standing.touch(self._written)

    def look(self) -> None:
        """Mark objects with Events for renewal, and drop Events that the API server has deleted meanwhile."""
        forgotten = self._clock() - FORGOTTEN
        for about, written_events in tuple(self._written.items()):
            self._written[about] = {
                known: written_event
                for known, written_event in written_events.items()
                if written_event.last > forgotten
            }
            if not self._written[about]:
                del self._written[about]
        self._standing.touch(self._written)

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the due Events of an object. Raises WritePostponed.

        Returns the monotonic time of the next report; None if the next report follows the next change.
        """
        self._forget_earlier(key)
        wanted = notices(key, self._standing.problems(key))
        if key.kind == NAMESPACE and (count := self._beyond_in(key.name)):
            notice = events.more(Namespace(key.name), count)
            wanted[notice.problem] = notice
        is_settled = now >= self._settled
        beyond = 0
        for action in tuple(due(wanted, self._written.get(key, {}), self._clock(), mending=is_settled)):
            if action.act is EventAction.BEGIN and self._is_beyond(action):
                beyond += 1
            else:
                self._budget.take(now)
                await self._write(action)
        self._count(key, wanted, beyond)
        return None if is_settled or not self._written.get(key) else self._settled

    def _forget_earlier(self, key: ObjectKey) -> None:
        """Forget the Events of an earlier object with the same name, which are not about the new one."""
        uid = self._standing.uid(key)
        if uid and (known := self._written.get(key)):
            self._written[key] = {name: event for name, event in known.items() if event.uid == uid}
            if not self._written[key]:
                del self._written[key]

    def _is_beyond(self, action: Action) -> bool:
        notice = action.notice
        return not notice.is_mended and notice.reason != MORE and sum(self._open.values()) >= OPEN

    def _beyond_in(self, namespace: str) -> int:
        return sum(count for key, count in self._beyond.items() if namespace_of(key) == namespace)

    def _count(self, key: ObjectKey, wanted: Mapping[str, Notice], beyond: int) -> None:
        """Update the numbers of reported and unreported problems; mark objects that may be reported now."""
        before, written_events = self._open.pop(key, 0), self._written.get(key, {})
        if count := sum((problem, False) in written_events for problem in wanted):
            self._open[key] = count
        if count < before:
            self._standing.touch(islice(self._beyond, before - count))
        if beyond != self._beyond.pop(key, 0):
            self._standing.touch([ObjectKey.of_namespace(namespace_of(key))])
        if beyond:
            self._beyond[key] = beyond

    async def _write(self, action: Action) -> None:
        match action.act:
            case EventAction.BEGIN:
                await self._begin(action)
            case EventAction.GO_ON if action.written is not None:
                await self._go_on(action.written)
            case _:
                pass

    async def _begin(self, action: Action) -> None:
        about = action.notice.about
        if (result := await self._read_object(about)) is None:
            self._written.pop(about, None)
            return
        api_version, metadata = result
        written_event = events.begun(action.notice, str(metadata.get("uid")), self._clock())
        body = events.body(written_event, api_version, metadata, self._cluster.reporter)
        try:
            create = partial(self._cluster.api.create, EVENTS, written_event.namespace, body)
            await self._attempts.make(
                WrittenKind.EVENT, "create events", create, written_event.namespace, str(about), writes=True
            )
        except ApiError as error:
            if not error.is_conflict:
                return  # the namespace is deleted
        self._keep(written_event)
        if not action.notice.is_mended:
            # Counted now, because the limit also applies to further problems of the object.
            self._open[about] = self._open.get(about, 0) + 1

    async def _go_on(self, written: WrittenEvent) -> None:
        after = events.again(written, self._clock())
        patch = partial(
            self._cluster.api.patch, EVENTS, written.namespace, written.name, events.series(after)
        )
        at = written.namespace, str(written.notice.about)
        try:
            await self._attempts.make(WrittenKind.EVENT, "patch events", patch, *at, writes=True)
        except ApiError:
            # The API server has deleted the Event; a new one begins.
            self._written[written.notice.about].pop(written.known_as, None)
            self._standing.touch([written.notice.about])
        else:
            self._keep(after)

    async def _read_object(self, about: ObjectKey) -> tuple[str, Raw] | None:
        """Return the apiVersion and metadata of an object; None if the object does not exist.

        The object is read by a list, because RBAC grants `list` anyway.
        """
        resource = await self._attempts.make(
            WrittenKind.EVENT, f"find {about.kind}", lambda: self._cluster.resource(about.kind)
        )
        if resource is None:
            return None
        named = partial(
            self._cluster.api.list, resource, about.namespace or None, fields=f"metadata.name={about.name}"
        )
        try:
            at = _within(about.namespace)
            result = (await self._attempts.make(WrittenKind.EVENT, f"list {about.kind}", named, *at))["items"]
        except ApiError:
            return None
        return (resource.api_version, result[0]["metadata"]) if result else None

    def _keep(self, written: WrittenEvent) -> None:
        self._written.setdefault(written.notice.about, {})[written.known_as] = written


def _within(namespace: str | None) -> tuple[str, ...]:
    return (namespace,) if namespace else ()
