"""Tests of the protobuf encoder and decoder against the library."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from meshwright.agent.statistics.protobuf import message, number_of
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire

COUNTS = st.integers(0, 2**64 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=200)


@given(NAMES, NAMES, COUNTS, st.lists(COUNTS, max_size=12), st.floats(allow_nan=False), st.booleans())
def test_encoded_fields_are_read_by_the_library(
    name: str, other: str, count: int, counts: list[int], amount: float, there: bool
) -> None:
    """The library reads every kind of field.

    These are texts, numbers, packed numbers, floats, and nested and repeated messages.
    """
    called = message((1, name), (2, other), (3, count & 0xFFFF))
    requests = message((1, tuple(counts)), (3, amount), (4, count))
    route = message((1, 2), (2, called), (3, other), (4, requests if there else []))
    written = message((1, name), (2, count), (3, amount), (4, []), (6, [route, route]))
    theirs = wire.Route(
        direction=wire.INBOUND,
        called=wire.Called(namespace=name, service=other, port=count & 0xFFFF),
        name=other,
        requests=wire.Requests(by_class=counts, seconds=amount, grpc_failed=count) if there else None,
    )
    expected = wire.ReportRequest(run=name, number=count, seconds=amount, routes=[theirs, theirs])
    assert wire.ReportRequest.FromString(written) == expected


@given(COUNTS, st.binary(max_size=300), st.floats(allow_nan=False), st.integers(0, 2**32 - 1))
@example(0, b"", 0.0, 0)
def test_number_is_found_among_unknown_fields(
    count: int, text: bytes, amount: float, next_after: int
) -> None:
    """Unknown fields are skipped, because a newer control plane can send more."""
    more = message((2, count), (3, text), (4, amount))
    answer = wire.ReportResponse(next_after_seconds=next_after).SerializeToString()
    assert number_of(more + answer + more, 1) == next_after
    assert number_of(answer + b"\x2d\x00\x00\x00\x00", 1) == next_after


@pytest.mark.parametrize(
    "written",
    [b"\x08", b"\x08\x80", b"\x12\x05ab", b"\x09\x00", b"\x0b", b"\x08" + b"\xff" * 20, b"\x2d\x00"],
)
def test_invalid_message_is_refused(written: bytes) -> None:
    """Invalid or cut-off bytes raise ValueError, and no byte beyond the end is read."""
    with pytest.raises(ValueError, match="message"):
        number_of(written, 1)


def test_minus_zero_is_encoded_as_missing() -> None:
    """The value -0.0 is left out like 0.0, because no report contains it."""
    assert message((3, -0.0)) == b""
