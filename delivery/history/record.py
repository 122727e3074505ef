"""What is remembered of one proxy: the last responses that it was sent, and what it said to them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from delivery.history.causes import Touch
from delivery.history.push import Answer, Push, Trigger
from delivery.history.versions import Content, Held, Move
from delivery.wave import Wave
from xds.protocol.resource import TypeUrl, Version
from xds.protocol.wire import Nonce, Rejection, Response
from xds.server.status import Variant

Known = tuple[tuple[Touch, ...], int]
"""The waves that a response may be due to, oldest first, and the newest moment of all (see Touch)."""


@dataclass(slots=True, eq=False)
class Sent:
    """One response; `response` is there as long as it may be answered."""

    content: Content
    move: Move
    due: tuple[Wave, ...] | Trigger
    version: Version
    nonce: str
    size: int
    sent: float
    response: Response | None
    state: Answer = Answer.PENDING
    answered: float | None = None
    said: Rejection | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Early:
    """An answer that came before word of what it answers; `known` are the waves until then.

    What comes later, perhaps because of the answer, did not lead to what it answers.
    """

    response: Response
    rejection: Rejection | None
    known: Known


@dataclass(slots=True, eq=False)
class TypeRecord:
    """One type of a proxy: what it holds, and the newest moment when it was last sent some of it."""

    held: Held
    seen: int = -1
    fresh: bool = True


@dataclass(slots=True, eq=False)
class Record:
    """A proxy's pushes, oldest first, and its newest stream; `opened` is the newest moment then."""

    variant: Variant
    opened: int
    since: float
    streams: int = 0
    again: bool = False
    pushes: list[Sent] = field(default_factory=list)
    types: dict[TypeUrl, TypeRecord] = field(default_factory=dict)
    moved: tuple[Touch, ...] = ()
    early: tuple[Early, ...] = ()


class Remembered(Protocol):
    """Whoever keeps what is remembered of one proxy: forgotten with all else that is known of it."""

    pushes: Record | None


def taken(proxy: Record, response: Response) -> Early | None:
    """Return the answer that came early, and keep it no longer."""
    for each in proxy.early:
        if each.response is response:
            proxy.early = tuple(other for other in proxy.early if other is not each)
            return each
    return None


def overtaken(pushes: Iterable[Sent], type_url: TypeUrl) -> Iterator[Sent]:
    """State of the world: the answer to the newest response of a type stands for older ones; yield these."""
    for each in pushes:
        if each.state is Answer.PENDING and each.content.type_url == type_url:
            each.state = Answer.OVERTAKEN
            yield each


def answer(push: Sent, rejection: Rejection | None, now: float) -> float | None:
    """Take an answer; return how long after its event an ACK came."""
    push.response, push.answered, push.said = None, now, rejection
    push.state = Answer.ACK if rejection is None else Answer.NACK
    return since(push.due, now) if rejection is None else None


def since(due: tuple[Wave, ...] | Trigger, now: float) -> float | None:
    """Return how long ago the first event was that led to a response; None where none did."""
    return now - min(wave.since for wave in due) if isinstance(due, tuple) else None


def shown(push: Sent, now: float, date: datetime) -> Push:
    """Return a response as pages show it; `now` and `date` are the same moment on both clocks."""
    content = push.content
    waited = now if push.state is Answer.PENDING else push.answered
    return Push(
        at=date - timedelta(seconds=now - push.sent),
        trigger=Trigger.CHANGE if isinstance(push.due, tuple) else push.due,
        waves=push.due if isinstance(push.due, tuple) else (),
        type_url=content.type_url,
        protocol=content.variant,
        nonce=Nonce(push.nonce),
        version=push.version,
        added=push.move.added,
        changed=tuple((name, old, content.versions[name]) for name, old in push.move.changed),
        removed=push.move.removed,
        again=push.move.again,
        size=push.size,
        answer=push.state,
        seconds=None if waited is None else waited - push.sent,
        since_event=since(push.due, push.sent),
        rejection=push.said,
    )
