"""Pushes as they are shown: what one response brought, what it was due to, and what was said to it."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from admin.metrics.labels import short_type
from admin.pages.jsonable import Document, jsonable
from xds.protocol.resource import ResourceName, TypeUrl, Version
from xds.protocol.wire import Nonce, Rejection
from xds.server.status import Variant


class Trigger(enum.StrEnum):
    """CHANGE: waves led to it. SUBSCRIBED: the client asked. RECONNECTED: as it does on a new stream."""

    CHANGE = "change"
    SUBSCRIBED = "subscribed"
    RECONNECTED = "reconnected"


class Answer(enum.StrEnum):
    """What became of a response. OVERTAKEN: by a newer one. ENDED: its stream ended before an answer."""

    PENDING = "pending"
    ACK = "ack"
    NACK = "nack"
    OVERTAKEN = "overtaken"
    ENDED = "stream ended"


class CauseRead(Protocol):
    """An object whose change led to a wave."""

    @property
    def kind(self) -> str:
        """Return the object's kind."""

    @property
    def name(self) -> str:
        """Return its namespace and name."""

    @property
    def origin(self) -> str:
        """Return where it stands."""

    @property
    def change(self) -> str:
        """Return `added`, `changed` or `removed`."""


class WaveRead(Protocol):
    """A wave: its number, and the objects whose changes it took together."""

    @property
    def number(self) -> int:
        """Return its number, counted from the start of the server."""

    @property
    def causes(self) -> Sequence[CauseRead]:
        """Return the objects, sorted."""

    @property
    def more(self) -> int:
        """Return how many more objects there were."""

    @property
    def at(self) -> datetime:
        """Return when it began."""


@dataclass(frozen=True, slots=True)
class Push:
    """One response sent. `changed` has the versions before and after; `again`: sent as they were held.

    `seconds` is the time to the answer, or how long it has been waited for; `since_event` is the time from
    the first event of its waves to the moment it was sent.
    """

    at: datetime
    trigger: Trigger
    waves: tuple[WaveRead, ...]
    type_url: TypeUrl
    protocol: Variant
    nonce: Nonce
    version: Version
    added: tuple[ResourceName, ...]
    changed: tuple[tuple[ResourceName, Version, Version], ...]
    removed: tuple[ResourceName, ...]
    again: int
    size: int
    answer: Answer
    seconds: float | None
    since_event: float | None
    rejection: Rejection | None


def push(shown: Push) -> Document:
    """Return one push."""
    return {
        "at": jsonable(shown.at),
        "trigger": trigger(shown),
        "type": short_type(shown.type_url),
        "protocol": shown.protocol.value,
        "nonce": shown.nonce,
        "version": shown.version,
        "added": list(shown.added),
        "changed": [{"name": name, "from": before, "to": after} for name, before, after in shown.changed],
        "removed": list(shown.removed),
        "again": shown.again,
        "bytes": shown.size,
        "answer": shown.answer.value,
        "seconds": None if shown.seconds is None else round(shown.seconds, 4),
        "seconds_from_event": None if shown.since_event is None else round(shown.since_event, 4),
        "error": None
        if shown.rejection is None
        else {"code": shown.rejection.code, "message": shown.rejection.message},
    }


def trigger(shown: Push) -> Document:
    """Return what a push was due to: why, and the waves with the objects that changed."""
    return {
        "why": shown.trigger.value,
        "waves": [
            {
                "wave": wave.number,
                "at": jsonable(wave.at),
                "causes": [
                    {"object": f"{each.kind} {each.name}", "origin": each.origin, "change": each.change}
                    for each in wave.causes
                ],
                "more": wave.more,
            }
            for wave in shown.waves
        ],
    }
