"""One xDS response as debug pages show a push: content, cause and answer."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.delivery.wave import Wave
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version
from xds.protocol.wire import Nonce, Rejection
from xds.stream_status import Variant


class Trigger(enum.StrEnum):
    """Cause of a response: CHANGE by waves, SUBSCRIBED by a request, RECONNECTED on a new stream."""

    CHANGE = "change"
    SUBSCRIBED = "subscribed"
    RECONNECTED = "reconnected"


class Answer(enum.StrEnum):
    """State of a response. OVERTAKEN: a newer response was answered.

    ENDED: its stream ended without an answer.
    """

    PENDING = "pending"
    ACK = "ack"
    NACK = "nack"
    OVERTAKEN = "overtaken"
    ENDED = "stream ended"


@dataclass(frozen=True, slots=True)
class Push:
    """One response sent.

    `changed` has the name with the old and the new version, for example `("outbound", "3f2a", "9c41")`.
    `again` counts resources sent in a version that the client already held. `size` is in bytes, `seconds` is
    the time to the answer (or the time waited so far), and `since_event` the time from the first event of the
    waves to the sending.
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
