"""Tests of the trace of a wave: whole values, and properties of every trace."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.admin.spans.change import CAUSES, SAID, spans
from meshwright.admin.spans.span import Kind, Span, Value
from meshwright.delivery.history.push import Answer
from meshwright.delivery.history.wave_record import PushRecord, WaveEnd, WaveRecord
from meshwright.delivery.wave import Cause, Change, Wave
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, SECRET, Version
from xds.protocol.wire import Rejection
from xds.stream_status import Variant

DATE = datetime(2026, 1, 2, tzinfo=UTC)
CAUSE = Cause(TRAFFIC_SPLIT, "shop/store", "split.yaml:2 (document 1)", Change.CHANGED)
WAVE = Wave(7, (CAUSE,), 0, since=10.0, began=10.5, at=DATE)
EPOCH = 1000.0
SECOND = 1_000_000_000
PUSH = PushRecord(
    node=NodeKey("one.store.shop"),
    waves=(7,),
    type_url=ROUTE,
    protocol=Variant.DELTA,
    version=Version("abc"),
    added=1,
    changed=2,
    removed=3,
    size=536,
    sent=11.0,
    ended=11.25,
    answer=Answer.ACK,
    rejection=None,
)
RECORD = WaveRecord(
    wave=WAVE,
    publishing=10.75,
    published=11.0,
    ended=11.5,
    ending=WaveEnd.ANSWERED,
    touched=2,
    reached=2,
    answers={Answer.ACK: 1, Answer.NACK: 1},
    pushes=(
        PUSH,
        replace(
            PUSH,
            node=NodeKey("two.store.shop"),
            protocol=Variant.SOTW,
            ended=11.5,
            answer=Answer.NACK,
            rejection=Rejection(13, "no such regex"),
        ),
    ),
)


def _of(record: WaveRecord) -> tuple[Span, ...]:
    """Return a record's spans with consecutive ids."""
    counter = itertools.count(1)
    return spans(record, EPOCH, lambda size: next(counter).to_bytes(size, "big"))


def _step(number: int, name: str, begun: float, ended: float) -> Span:
    trace, root = (1).to_bytes(16, "big"), (2).to_bytes(8, "big")
    begins, ends = (int((EPOCH + item) * SECOND) for item in (begun, ended))
    return Span(trace, number.to_bytes(8, "big"), root, name, Kind.INTERNAL, begins, ends, {})


def test_wave_is_one_trace() -> None:
    """The trace has the wave from its event to the last answer, its phases and every push.

    A rejection is an error.
    """
    root, *others = _of(RECORD)
    assert root == Span(
        trace=(1).to_bytes(16, "big"),
        id=(2).to_bytes(8, "big"),
        parent=b"",
        name="change",
        kind=Kind.INTERNAL,
        begun=1010 * SECOND,
        ended=int(1011.5 * SECOND),
        attributes={
            "meshwright.wave": 7,
            "meshwright.causes": ("TrafficSplit shop/store changed (split.yaml:2 (document 1))",),
            "meshwright.causes.left_out": 0,
            "meshwright.proxies.touched": 2,
            "meshwright.proxies.reached": 2,
            "meshwright.pushes": 2,
            "meshwright.pushes.acknowledged": 1,
            "meshwright.pushes.rejected": 1,
            "meshwright.pushes.unanswered": 0,
            "meshwright.pushes.left_out": 0,
            "meshwright.ended": "answered",
        },
        error="1 of 2 pushes rejected",
    )
    push = replace(
        _step(6, "push route", 11.0, 11.25),
        kind=Kind.CLIENT,
        attributes={
            "rpc.system": "grpc",
            "rpc.service": "envoy.service.discovery.v3.AggregatedDiscoveryService",
            "rpc.method": "DeltaAggregatedResources",
            "meshwright.proxy": "one.store.shop",
            "meshwright.type": "route",
            "meshwright.version": "abc",
            "meshwright.waves": (7,),
            "meshwright.resources.added": 1,
            "meshwright.resources.changed": 2,
            "meshwright.resources.removed": 3,
            "meshwright.bytes": 536,
            "meshwright.answer": "ack",
        },
    )
    answer: dict[str, Value] = {
        "rpc.method": "StreamAggregatedResources",
        "meshwright.proxy": "two.store.shop",
        "meshwright.answer": "nack",
        "meshwright.rejection.code": 13,
        "error.type": "nack",
    }
    assert others == [
        _step(3, "gather", 10.0, 10.5),
        _step(4, "compute", 10.5, 10.75),
        _step(5, "publish", 10.75, 11.0),
        push,
        replace(
            push,
            id=(7).to_bytes(8, "big"),
            ended=int(1011.5 * SECOND),
            attributes={**push.attributes, **answer},
            error="no such regex",
        ),
    ]


def test_causes_and_rejection_messages_are_cut() -> None:
    """A trace has at most `CAUSES` causes and counts the others, and a rejection's message is cut."""
    many = replace(RECORD, wave=replace(WAVE, causes=(CAUSE,) * (CAUSES + 3), more=4))
    root = _of(many)[0]
    assert root.attributes["meshwright.causes"] == (str(CAUSE),) * CAUSES
    assert root.attributes["meshwright.causes.left_out"] == 7
    long = replace(PUSH, answer=Answer.NACK, rejection=Rejection(13, "x" * (SAID + 1)))
    assert _of(replace(RECORD, pushes=(long,)))[-1].error == "x" * SAID


@pytest.mark.parametrize("answer", [Answer.NACK, Answer.ACK])
def test_rejection_message_of_a_secret_is_not_exported(answer: Answer) -> None:
    """A proxy's message about a secret may contain the secret, so it is replaced.

    The push itself is exported.
    """
    words = Rejection(13, "no key in MIIEvQIBADANBg") if answer is Answer.NACK else None
    push = replace(PUSH, type_url=SECRET, answer=answer, rejection=words)
    span = _of(replace(RECORD, pushes=(push,)))[-1]
    assert "MIIEvQ" not in repr(span)
    assert span.name == "push secret"
    assert span.error == ("(not shown, because the resource is a secret)" if words else None)


def test_push_without_an_answer_is_an_error() -> None:
    """A push without an answer is an error; one that was overtaken, or whose stream ended, is not."""
    pushes = tuple(replace(PUSH, answer=item) for item in (Answer.PENDING, Answer.OVERTAKEN, Answer.ENDED))
    messages = _of(replace(RECORD, pushes=pushes, answers=Counter(push.answer for push in pushes)))
    assert [span.error for span in messages[-3:]] == ["no answer", None, None]
    assert messages[0].attributes["meshwright.pushes.unanswered"] == 1


Times = st.lists(st.floats(0, 1e6), min_size=6, max_size=6).map(sorted)


@given(times=Times, epoch=st.floats(1.6e9, 2e9), count=st.integers(0, 5), beyond=st.integers(0, 1000))
def test_children_lie_within_the_wave_and_all_pushes_are_counted(
    times: list[float], epoch: float, count: int, beyond: int
) -> None:
    """For any times, all children lie within the root span, and ids are unique.

    Pushes beyond the bound are counted.
    """
    since, began, publishing, published, sent, ended = times
    push = replace(PUSH, sent=sent, ended=ended)
    record = replace(
        RECORD,
        wave=replace(WAVE, since=since, began=began),
        publishing=publishing,
        published=published,
        ended=ended,
        pushes=(push,) * count,
        answers={Answer.ACK: count + beyond},
    )
    ids = itertools.count(1)
    root, *others = spans(record, epoch, lambda size: next(ids).to_bytes(size, "big"))
    assert {span.parent for span in others} == {root.id}
    assert {span.trace for span in others} == {root.trace}
    assert len({span.id for span in (root, *others)}) == 1 + len(others)
    for span in others:
        assert root.begun <= span.begun <= span.ended <= root.ended
    messages = [span for span in others if span.kind is Kind.CLIENT]
    assert len(messages) + int(str(root.attributes["meshwright.pushes.left_out"])) == count + beyond
