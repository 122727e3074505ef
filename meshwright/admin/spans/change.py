"""Conversion of a wave to one trace: the change, its steps, and every push with its answer.

For example, the root span `change` has the children `gather`, `compute`, `publish` and `push cluster`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.admin.spans.span import Kind, Span, Value
from meshwright.delivery.history.push import Answer
from meshwright.delivery.history.wave_record import PushRecord, WaveRecord
from meshwright.sidecars.type_words import short_type
from xds.stream_status import Variant

CAUSES: Final = 16
"""Number of causes in a span; further causes are counted."""

SAID: Final = 256
"""Maximum characters of a proxy's error message."""

_SECRET: Final = frozenset({"secret", "credentials"})
_WITHHELD: Final = "(not shown, because the resource is a secret)"
_METHODS: Final = {Variant.SOTW: "StreamAggregatedResources", Variant.DELTA: "DeltaAggregatedResources"}

NewId = Callable[[int], bytes]
"""Function that returns the given number of random bytes."""


@dataclass(frozen=True, slots=True)
class _Trace:
    """A trace under construction; `epoch` is the Unix time in seconds at which the monotonic clock was 0."""

    trace: bytes
    root: bytes
    epoch: float
    new_id: NewId

    def at(self, moment: float) -> int:
        return round((moment + self.epoch) * 1_000_000_000)

    def child(self, name: str, begun: float, ended: float, attributes: Mapping[str, Value]) -> Span:
        """Return the span for one step of a change of the mesh."""
        begins, ends = self.at(begun), self.at(ended)
        return Span(self.trace, self.new_id(8), self.root, name, Kind.INTERNAL, begins, ends, attributes)

    def push(self, push: PushRecord) -> Span:
        """Return the span for one push to a proxy, from the sending to the answer."""
        return Span(
            trace=self.trace,
            id=self.new_id(8),
            parent=self.root,
            name=f"push {short_type(push.type_url)}",
            kind=Kind.CLIENT,
            begun=self.at(push.sent),
            ended=self.at(push.ended),
            attributes=dict(_of_push(push)),
            error=_wrong(push),
        )


def spans(record: WaveRecord, epoch: float, new_id: NewId) -> tuple[Span, ...]:
    """Return the trace of a wave: its root, the steps until publication, and its pushes in order.

    `epoch` is the Unix time in seconds at which the monotonic clock was 0.
    """
    trace = _Trace(new_id(16), new_id(8), epoch, new_id)
    wave = record.wave
    root = Span(
        trace=trace.trace,
        id=trace.root,
        parent=b"",
        name="change",
        kind=Kind.INTERNAL,
        begun=trace.at(wave.since),
        ended=trace.at(record.ended),
        attributes=_of_change(record),
        error=_refused(record),
    )
    return (
        root,
        trace.child("gather", wave.since, wave.began, {}),
        trace.child("compute", wave.began, record.publishing, {}),
        trace.child("publish", record.publishing, record.published, {}),
        *(trace.push(push) for push in record.pushes),
    )


def _of_change(record: WaveRecord) -> Mapping[str, Value]:
    wave, answers = record.wave, record.answers
    return {
        "meshwright.wave": wave.number,
        "meshwright.causes": tuple(str(cause) for cause in wave.causes[:CAUSES]),
        "meshwright.causes.left_out": len(wave.causes[CAUSES:]) + wave.more,
        "meshwright.proxies.touched": record.touched,
        "meshwright.proxies.reached": record.reached,
        "meshwright.pushes": sum(answers.values()),
        "meshwright.pushes.acknowledged": answers.get(Answer.ACK, 0),
        "meshwright.pushes.rejected": answers.get(Answer.NACK, 0),
        "meshwright.pushes.unanswered": answers.get(Answer.PENDING, 0),
        "meshwright.pushes.left_out": sum(answers.values()) - len(record.pushes),
        "meshwright.ended": record.ending.value,
    }


def _of_push(push: PushRecord) -> Iterator[tuple[str, Value]]:
    yield "rpc.system", "grpc"
    yield "rpc.service", "envoy.service.discovery.v3.AggregatedDiscoveryService"
    yield "rpc.method", _METHODS[push.protocol]
    yield "meshwright.proxy", push.node
    yield "meshwright.type", short_type(push.type_url)
    yield "meshwright.version", push.version
    yield "meshwright.waves", push.waves
    yield "meshwright.resources.added", push.added
    yield "meshwright.resources.changed", push.changed
    yield "meshwright.resources.removed", push.removed
    yield "meshwright.bytes", push.size
    yield "meshwright.answer", push.answer.value
    if push.rejection is not None:
        yield "meshwright.rejection.code", push.rejection.code
        yield "error.type", push.answer.value


def _wrong(push: PushRecord) -> str | None:
    """Return a proxy's error message for a rejected push, withheld if it may contain a secret."""
    if push.rejection is None:
        return "no answer" if push.answer is Answer.PENDING else None
    return _WITHHELD if short_type(push.type_url) in _SECRET else push.rejection.message[:SAID]


def _refused(record: WaveRecord) -> str | None:
    refused, pushes = record.answers.get(Answer.NACK, 0), sum(record.answers.values())
    return f"{refused} of {pushes} pushes rejected" if refused else None
