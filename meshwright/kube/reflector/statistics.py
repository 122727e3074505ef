"""What is known of a reflector's work, for gauges, pages and checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from meshwright.kube.errors import KubeError, Reason


@dataclass(frozen=True, slots=True)
class Figures:
    """How current what a reflector has is, and what happened on the way.

    `heard` is when the server last said anything of these objects, if only that nothing has changed;
    `relists` counts lists after the first, `events` those of objects, `errors` failures by their reason.
    `error` is why what it has may be old, empty while it is current, and `reason` of what kind that is.
    `unread` tells of the last object that was left out.
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
        """Count events of objects; none say that the server is there."""
        last = now if events else self.last_event
        return replace(self, heard=now, last_event=last, events=self.events + events)

    def failed(self, reason: Reason, times: int = 1) -> Self:
        """Count failures that do not make what is known old."""
        return replace(self, errors={**self.errors, reason: self.errors.get(reason, 0) + times})

    def erring(self, error: KubeError, now: datetime) -> Self:
        """Say why what is known may be old, since the first such moment."""
        return replace(self, error=str(error), reason=error.reason, error_since=self.error_since or now)

    def well(self) -> Self:
        """Say that what is known is current."""
        return replace(self, error="", reason=None, error_since=None) if self.error else self
