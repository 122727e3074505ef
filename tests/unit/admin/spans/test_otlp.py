"""Tests of spans as OTLP bytes, read with the protocol's messages, and of a collector's answers."""

from meshwright.admin.spans.otlp import rejected, request
from meshwright.admin.spans.span import Kind, Span
from protos.opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from protos.opentelemetry.proto.trace.v1 import trace_pb2

SPAN = Span(
    trace=b"t" * 16,
    id=b"i" * 8,
    parent=b"p" * 8,
    name="push route",
    kind=Kind.CLIENT,
    begun=1,
    ended=2,
    attributes={"text": "a", "number": 3, "texts": ("b", "c"), "numbers": (4, 5)},
    error="no",
)


def test_span_is_encoded_with_all_fields() -> None:
    """Every field and every kind of attribute value is encoded."""
    (resource_spans,) = trace_service_pb2.ExportTraceServiceRequest.FromString(
        request({"service.name": "meshwright"}, "1.2", (SPAN,))
    ).resource_spans
    (scope,) = resource_spans.instrumentation_library_spans
    (span,) = scope.spans
    assert [
        (attribute.key, attribute.value.string_value) for attribute in resource_spans.resource.attributes
    ] == [("service.name", "meshwright")]
    assert (scope.instrumentation_library.name, scope.instrumentation_library.version) == (
        "meshwright.delivery",
        "1.2",
    )
    assert (span.trace_id, span.span_id, span.parent_span_id) == (SPAN.trace, SPAN.id, SPAN.parent)
    assert (span.name, span.kind) == ("push route", trace_pb2.Span.SPAN_KIND_CLIENT)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (1, 2)
    assert (span.status.code, span.status.message) == (trace_pb2.Status.STATUS_CODE_ERROR, "no")
    text, number, texts, numbers = span.attributes
    assert (text.key, text.value.string_value) == ("text", "a")
    assert (number.key, number.value.int_value) == ("number", 3)
    assert [any_value.string_value for any_value in texts.value.array_value.values] == ["b", "c"]
    assert [any_value.int_value for any_value in numbers.value.array_value.values] == [4, 5]


def test_text_that_is_not_unicode_is_encoded() -> None:
    """A surrogate in a text is replaced, because a file name can contain any bytes."""
    assert b"odd?" in request({"file": "odd\udcff"}, "", ())


def test_number_of_rejected_spans_is_read() -> None:
    """ExportTracePartialSuccess of OTLP 1 has `rejected_spans`; an unreadable answer counts as 0."""
    assert rejected(b"") == 0
    assert rejected(bytes([0x0A, 0x02, 0x08, 0x07])) == 7
    assert rejected(bytes([0x0A, 0x04, 0x12, 0x02]) + b"no") == 0
    assert rejected(b"\xff") == 0, "what cannot be read says nothing"
