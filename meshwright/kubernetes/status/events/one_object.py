"""Writer of Events about one object outside the mesh, for example the injector's ConfigMap."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.kube.resource import Raw
from meshwright.kubernetes.status import event as events
from meshwright.kubernetes.status.event import (
    EVENTS,
    Action,
    EventAction,
    EventReporter,
    Notice,
    WrittenEvent,
    due,
)
from meshwright.kubernetes.status.statements import bounded
from meshwright.mesh.objects import ObjectKey

AGAIN: Final = 60.0
"""Seconds between two checks: an Event is renewed while its problem lasts."""

_log = structlog.get_logger("reporting.one_object")


class OneObject:
    """Reports the problem of one object, and its end, in Events (see `event`).

    Servers of one mesh with the same problem write the same Event. A failed write is logged once and
    repeated.
    """

    def __init__(
        self, api: Api, about: ObjectKey, reason: str, reporter: EventReporter, clock: Callable[[], datetime]
    ) -> None:
        self._api, self._about, self._reason, self._reporter, self._clock = (
            api,
            about,
            reason,
            reporter,
            clock,
        )
        self._wanted: dict[str, Notice] = {}
        self._metadata: Raw = {}
        self._written: dict[tuple[str, bool], WrittenEvent] | None = None
        self._changed = asyncio.Event()
        self._failure = ""

    def set_problem(self, metadata: Raw, error: str) -> None:
        """Set the problem of the object with this metadata; an empty `error` means a valid object."""
        if self._metadata.get("uid") != metadata.get("uid"):
            self._written = None  # a new object with the same name, without Events
        self._metadata, self._wanted = metadata, {}
        if error:
            identity = hashlib.sha256(f"{self._reason}\0{error}".encode()).hexdigest()[:16]
            self._wanted[identity] = Notice(self._about, identity, self._reason, "Accept", bounded(error))
        self._changed.set()

    async def run(self) -> None:
        """Write due Events about the object until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):  # a regular check
                async with asyncio.timeout(AGAIN):
                    await self._changed.wait()
            self._changed.clear()
            if self._metadata:
                await self._write_event()

    async def _write_event(self) -> None:
        try:
            if self._written is None:
                self._written = await self._remembered()
            for action in tuple(due(self._wanted, self._written, self._clock())):
                await self._write(action, self._written)
        except KubeError as error:
            if str(error) != self._failure:
                _log.warning("Event not written", about=str(self._about), error=str(error))
            self._failure = str(error)
        else:
            self._failure = ""

    async def _remembered(self) -> dict[tuple[str, bool], WrittenEvent]:
        """Return the Events about the object in the cluster, including the Events of other servers."""
        ours = f"{events.HOME}={self._reporter.home}"
        listed = await self._api.list(EVENTS, events.namespace_of(self._about), labels=ours)
        uid = self._metadata.get("uid")
        raws = [item for item in listed["items"] if (item.get("regarding") or {}).get("uid") == uid]
        written_events = [
            written_event for written_event in map(events.read, raws) if written_event is not None
        ]
        return {
            written_event.known_as: written_event
            for written_event in written_events
            if written_event.notice.about == self._about
        }

    async def _write(self, action: Action, written: dict[tuple[str, bool], WrittenEvent]) -> None:
        if action.act is EventAction.GO_ON and action.written is not None:
            after = events.again(action.written, self._clock())
            await self._api.patch(EVENTS, after.namespace, after.name, events.series(after))
        else:
            after = events.begun(action.notice, str(self._metadata.get("uid")), self._clock())
            try:
                body = events.body(after, "v1", self._metadata, self._reporter)
                await self._api.create(EVENTS, after.namespace, body)
            except ApiError as error:
                if not error.is_conflict:
                    raise
        written[after.known_as] = after
