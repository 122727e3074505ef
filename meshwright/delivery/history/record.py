"""Record of one proxy: the last xDS responses to the proxy, with their answers."""

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
    """One xDS response to one proxy; `response` is kept as long as an ACK or NACK is possible."""

    delivery: Delivery
    nonce: str
    sent: float
    response: Response | None
    state: Answer = Answer.PENDING
    answered: float | None = None
    rejection: Rejection | None = None


@dataclass(slots=True, eq=False)
class TypeRecord:
    """One type of a proxy: the versions held by the client, and the newest moment at the last response.

    `fresh` is True until the first response of the type on the newest stream.
    """

    client_versions: ClientVersions
    seen: int = -1
    fresh: bool = True


@dataclass(slots=True, eq=False)
class Record:
    """The pushes of a proxy, oldest first, with the state of the newest stream.

    `opened` is the newest moment at the opening of the stream, `since` the time of the opening in seconds.
    `group` is the last served group of the proxy, and `moved` are the latest changes of group.
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
    """Object with the push record of one proxy; the record is dropped when the proxy is forgotten."""

    pushes: Record | None


class PushFollower(Protocol):
    """Observer of each xDS response until the answer; the methods must be quick and must not raise."""

    def sent(self, node: NodeKey, push: SentResponse) -> None:
        """Handle the sending of a response."""

    def finished(self, node: NodeKey, push: SentResponse, now: float) -> None:
        """Handle the end of a response, at most once each: answered, overtaken, or ended with the stream."""


def overtaken(pushes: Iterable[SentResponse], type_url: TypeUrl) -> Iterator[SentResponse]:
    """Mark and yield the pending responses of a type replaced by a newer state-of-the-world response.

    The answer to the newest response covers them, so they never get a separate answer.
    """
    for push in pushes:
        if push.state is Answer.PENDING and push.delivery.content.type_url == type_url:
            push.state = Answer.OVERTAKEN
            yield push


def answer(push: SentResponse, rejection: Rejection | None, now: float) -> float | None:
    """Record an answer at the time `now`; return the seconds from the first event to an ACK, else `None`."""
    push.response, push.answered, push.rejection = None, now, rejection
    push.state = Answer.ACK if rejection is None else Answer.NACK
    return since(push.delivery, now) if rejection is None else None


def since(delivery: Delivery, now: float) -> float | None:
    """Return the seconds since the first event behind a response, or `None` for a requested response."""
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
        rejection=push.rejection,
    )
