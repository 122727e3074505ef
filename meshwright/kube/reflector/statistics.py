"""Age of a reflector's objects and its counters, for metrics, status pages and health checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from meshwright.kube.errors import KubeError, Reason


@dataclass(frozen=True, slots=True)
class Figures:
    """The age of a reflector's objects, and the events and failures so far.

    `heard` is the time of the last line from the server about these objects, including bookmarks. `relists`
    counts lists after the first, `events` the events of objects, and `errors` failures by reason. `error`
    explains why the objects may be outdated, and is empty while they are current; `reason` is its kind.
    `unread` describes the last unreadable object.
    """

    heard: datetime | None = None
    last_event: datetime | None = None
    last_list: datetime | None = None
    relists: int = 0
    events: int = 0
    errors: Mapping[Reason, int] = field(default_factory=dict)
    error: str = ""
    reason: Reason | None = None
    error_since: datetime | None = None
    unread: str = ""

    def took(self, events: int, now: datetime) -> Self:
        """Count a batch of watch events. Even a batch without events shows that the server is alive."""
        last = now if events else self.last_event
        return replace(self, heard=now, last_event=last, events=self.events + events)

    def failed(self, reason: Reason, times: int = 1) -> Self:
        """Count failures for the metrics only; the objects still count as current."""
        return replace(self, errors={**self.errors, reason: self.errors.get(reason, 0) + times})

    def erring(self, error: KubeError, now: datetime) -> Self:
        """Record why the objects may be outdated. `error_since` keeps the time of the first error."""
        return replace(self, error=str(error), reason=error.reason, error_since=self.error_since or now)

    def well(self) -> Self:
        """Record that the objects are current, without an error."""
        return replace(self, error="", reason=None, error_since=None) if self.error else self
