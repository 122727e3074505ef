"""What became of one wave, once nobody is waited for any more: who was sent it, and what was said to it."""

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
    """Why nobody is waited for any more.

    ANSWERED: all whom it concerned were sent it, and have answered. LATE: not all, in the time there was.
    CROWDED_OUT: too many newer waves were waited for as well.
    """

    ANSWERED = "answered"
    LATE = "late"
    CROWDED_OUT = "crowded out"


@dataclass(frozen=True, slots=True)
class PushRecord:
    """One response to one proxy; `waves` are the numbers of all that it was due to, newest first.

    `added`, `changed` and `removed` count resources, `size` is in bytes. `ended` is the moment of the answer,
    or since when none is waited for. Moments are seconds of one monotonic clock.
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
    def of(cls, node: NodeKey, push: SentResponse, ended: float) -> "PushRecord":
        """Return what is remembered of a response that nobody waits for any more."""
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
            rejection=push.said,
        )


@dataclass(frozen=True, slots=True)
class WaveRecord:
    """A wave, from its first event until nobody is waited for: `ended`, which is the last answer if all came.

    `publishing` is when it was computed, `published` when all of it was in force. It concerned `touched`
    connected proxies, of which `reached` were sent something that it led to. `answers` counts all of those
    responses by what became of them; `pushes` are the first of them and some more that were rejected, in the
    order in which they went out.
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
    """Return the waves that a response was due to; none if it was asked for."""
    return push.delivery.due if isinstance(push.delivery.due, tuple) else ()
