"""Encoding of spans in OpenTelemetry's protocol (OTLP), and decoding of the collector's answer.

The message classes are those of OTLP 0.9, which Envoy's API includes. The field `instrumentation_library` of
that version is now called `scope`, with the same number, so the bytes are valid OTLP 1.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from meshwright.admin.spans.span import Span, Value
from protos.opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from protos.opentelemetry.proto.common.v1 import common_pb2
from protos.opentelemetry.proto.resource.v1 import resource_pb2
from protos.opentelemetry.proto.trace.v1 import trace_pb2

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SCOPE: Final = "meshwright.delivery"

_PARTIAL_SUCCESS, _REJECTED_SPANS = 1, 1


def request(teller: Mapping[str, Value], version: str, spans: Iterable[Span]) -> bytes:
    """Return the bytes of an OTLP export request; `teller` has the resource attributes of the sender."""
    scope = trace_pb2.InstrumentationLibrarySpans(
        instrumentation_library=common_pb2.InstrumentationLibrary(name=SCOPE, version=version),
        spans=map(_span, spans),
    )
    resource_spans = trace_pb2.ResourceSpans(
        resource=resource_pb2.Resource(attributes=_attributes(teller)), instrumentation_library_spans=[scope]
    )
    return trace_service_pb2.ExportTraceServiceRequest(resource_spans=[resource_spans]).SerializeToString()


def rejected(answer: bytes) -> int:
    """Return the number of spans rejected by the collector, from the answer to an export request."""
    try:
        details = (
            item for part in _field(answer, _PARTIAL_SUCCESS) for item in _field(part, _REJECTED_SPANS)
        )
        return sum(map(int, details))
    except (DecodeError, TypeError, ValueError):
        return 0


def _field(message: bytes, number: int) -> list[Any]:
    """Return the values of a field by its number, for fields that our older messages do not know."""
    result: Any = UnknownFieldSet(Empty.FromString(message))  # Any: the stubs lack iteration
    return [item.data for item in result if item.field_number == number]


def _span(span: Span) -> trace_pb2.Span:
    wrong = trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR, message=span.error or "")
    return trace_pb2.Span(
        trace_id=span.trace,
        span_id=span.id,
        parent_span_id=span.parent,
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind),
        start_time_unix_nano=span.begun,
        end_time_unix_nano=span.ended,
        attributes=_attributes(span.attributes),
        status=None if span.error is None else wrong,
    )


def _attributes(result: Mapping[str, Value]) -> list[common_pb2.KeyValue]:
    return [common_pb2.KeyValue(key=name, value=_value(value)) for name, value in result.items()]


def _value(value: Value) -> common_pb2.AnyValue:
    match value:
        case str():
            return common_pb2.AnyValue(
                string_value=value.encode(errors="replace").decode()
            )  # surrogates of a file name
        case int():
            return common_pb2.AnyValue(int_value=value)
        case _:
            return common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=map(_value, value)))
