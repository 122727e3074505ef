"""What is remembered of one proxy: the last responses that it was sent, and what it said to them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from meshwright.delivery.history.causes import GroupWave
from meshwright.delivery.history.push import Answer, Push, Trigger
from meshwright.delivery.history.versions import ClientVersions, Delivery
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import TypeUrl
from xds.protocol.wire import Nonce, Rejection, Response
from xds.stream_status import Variant


@dataclass(slots=True, eq=False)
class SentResponse:
    """One response to one proxy; `response` is there as long as it may be answered."""

    delivery: Delivery
    nonce: str
    sent: float
    response: Response | None
    state: Answer = Answer.PENDING
    answered: float | None = None
    said: Rejection | None = None


@dataclass(slots=True, eq=False)
class TypeRecord:
    """One type of a proxy: what it holds, and the newest moment when it was last sent some of it."""

    held: ClientVersions
    seen: int = -1
    fresh: bool = True


@dataclass(slots=True, eq=False)
class Record:
    """A proxy's pushes, oldest first, and its newest stream; `opened` is the newest moment then.

    `group` is the one with which it was served last.
    """

    variant: Variant
    opened: int
    since: float
    streams: int = 0
    again: bool = False
    pushes: list[SentResponse] = field(default_factory=list)
    types: dict[TypeUrl, TypeRecord] = field(default_factory=dict)
    moved: tuple[GroupWave, ...] = ()
    group: GroupKey | None = None


class ProxyRecords(Protocol):
    """Whoever keeps what is remembered of one proxy: forgotten with all else that is known of it."""

    pushes: Record | None


class PushFollower(Protocol):
    """Whoever follows pushes to their answers; must be quick and must not raise."""

    def sent(self, node: NodeKey, push: SentResponse) -> None:
        """Take note of a response that goes out."""

    def finished(self, node: NodeKey, push: SentResponse, now: float) -> None:
        """Take note that one was answered at that moment, or never will be: once for each, if at all."""


def overtaken(pushes: Iterable[SentResponse], type_url: TypeUrl) -> Iterator[SentResponse]:
    """State of the world: the answer to the newest response of a type stands for older ones; yield these."""
    for each in pushes:
        if each.state is Answer.PENDING and each.delivery.content.type_url == type_url:
            each.state = Answer.OVERTAKEN
            yield each


def answer(push: SentResponse, rejection: Rejection | None, now: float) -> float | None:
    """Take an answer; return how long after its event an ACK came."""
    push.response, push.answered, push.said = None, now, rejection
    push.state = Answer.ACK if rejection is None else Answer.NACK
    return since(push.delivery, now) if rejection is None else None


def since(delivery: Delivery, now: float) -> float | None:
    """Return how long ago the first event was that led to a response; None where none did."""
    return None if delivery.began is None else now - delivery.began


def shown(push: SentResponse, now: float, date: datetime) -> Push:
    """Return a response as pages show it; `now` and `date` are the same moment on both clocks."""
    delivery, content = push.delivery, push.delivery.content
    waited = now if push.state is Answer.PENDING else push.answered
    return Push(
        at=date - timedelta(seconds=now - push.sent),
        trigger=Trigger.CHANGE if isinstance(delivery.due, tuple) else delivery.due,
        waves=delivery.due if isinstance(delivery.due, tuple) else (),
        type_url=content.type_url,
        protocol=content.variant,
        nonce=Nonce(push.nonce),
        version=delivery.version,
        added=tuple(delivery.move.added),
        changed=tuple((name, old, content.versions[name]) for name, old in delivery.move.changed),
        removed=delivery.move.removed,
        again=delivery.move.again,
        size=delivery.size,
        answer=push.state,
        seconds=None if waited is None else waited - push.sent,
        since_event=since(delivery, push.sent),
        rejection=push.said,
    )
