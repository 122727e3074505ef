"""Record of one finished wave: the responses that it caused, and their answers."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from meshwright.delivery.history.push import Answer
from meshwright.delivery.history.record import SentResponse
from meshwright.delivery.wave import Wave
from xds.cache import NodeKey
from xds.protocol.resources.resource import TypeUrl, Version
from xds.protocol.wire import Rejection
from xds.stream_status import Variant


class WaveEnd(enum.StrEnum):
    """Reason for the end of a wave.

    ANSWERED: all proxies that it concerns got a response and answered. LATE: not all did before the deadline.
    CROWDED_OUT: too many newer waves were in flight.
    """

    ANSWERED = "answered"
    LATE = "late"
    CROWDED_OUT = "crowded out"


@dataclass(frozen=True, slots=True)
class PushRecord:
    """One response to one proxy; `waves` are the numbers of all waves that caused it, newest first.

    `added`, `changed` and `removed` count resources, `size` is in bytes. `ended` is the time of the answer,
    or of the end of waiting. Times are seconds of one monotonic clock.
    """

    node: NodeKey
    waves: tuple[int, ...]
    type_url: TypeUrl
    protocol: Variant
    version: Version
    added: int
    changed: int
    removed: int
    size: int
    sent: float
    ended: float
    answer: Answer
    rejection: Rejection | None

    @classmethod
    def from_response(cls, node: NodeKey, push: SentResponse, ended: float) -> "PushRecord":
        """Return the record of a response that has ended, or is no longer waited for."""
        delivery = push.delivery
        return cls(
            node=node,
            waves=tuple(wave.number for wave in due(push)),
            type_url=delivery.content.type_url,
            protocol=delivery.content.variant,
            version=delivery.version,
            added=len(delivery.move.added),
            changed=len(delivery.move.changed),
            removed=len(delivery.move.removed),
            size=delivery.size,
            sent=push.sent,
            ended=ended,
            answer=push.state,
            rejection=push.rejection,
        )


@dataclass(frozen=True, slots=True)
class WaveRecord:
    """A wave from its first event to its end (`ended`, the last answer if all proxies answered).

    `publishing` is the time when the computation was done, and `published` when all parts were in force. The
    wave concerned `touched` connected proxies, and `reached` proxies got a response because of it. `answers`
    counts these responses by state; `pushes` are the first of them and some later rejections, in the order of
    sending. Times are seconds of one monotonic clock.
    """

    wave: Wave
    publishing: float
    published: float
    ended: float
    ending: WaveEnd
    touched: int
    reached: int
    answers: Mapping[Answer, int]
    pushes: tuple[PushRecord, ...]


def due(push: SentResponse) -> tuple[Wave, ...]:
    """Return the waves that caused a response; empty if the client requested the response."""
    return push.delivery.due if isinstance(push.delivery.due, tuple) else ()
