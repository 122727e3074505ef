"""One response as it is remembered and shown: what it brought, what it was due to, what was said to it."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.delivery.wave import Wave
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version
from xds.protocol.wire import Nonce, Rejection
from xds.stream_status import Variant


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


@dataclass(frozen=True, slots=True)
class Push:
    """One response sent. `changed` has the versions before and after; `again`: sent as they were held.

    `seconds` is the time to the answer, or how long it has been waited for; `since_event` is the time from
    the first event of its waves to the moment it was sent.
    """

    at: datetime
    trigger: Trigger
    waves: tuple[Wave, ...]
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
